/**
 * What the parts of the isolation decide without starting anything: filters, folders, facts, and which call may come over which socket.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer as createHttp, request } from 'node:http';
import type { createServer, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { parseFacts } from '../../sandbox-runner/isolation/probe-facts.ts';
import { sandboxRuntimeDir } from '../../sandbox-runner/isolation/runtime-dir.ts';
import { seccompFilter } from '../../sandbox-runner/isolation/seccomp.ts';
import { mayCome, openDoor } from '../../src/http/agent/doors.ts';
import { type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';

describe('the parts of the isolation', () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'heph-parts-'));
  after(() => rmSync(dir, { recursive: true, force: true }));

  it('have a filter for x86-64 only, and commands may do less than runners', () => {
    const [runner, tool] = [seccompFilter('runner', 'x64'), seccompFilter('tool', 'x64')];
    expect(runner?.length).to.be.greaterThan(0);
    expect(tool?.length).to.be.greaterThan(runner?.length ?? 0);
    expect(seccompFilter('runner', 'arm64')).to.equal(null);
  });

  it('know a process that is isolated from one that is not', () => {
    const status = (seccomp: number, caps: string) =>
      `Seccomp:\t${seccomp}\nNoNewPrivs:\t1\nCapEff:\t${caps}\nCapBnd:\t${caps}\nUid:\t1\t2\t3\t4\n`;
    const net = (...names: string[]) => `Inter-|   Receive\n face |bytes\n${names.map((name) => `  ${name}:  0 0 0 0 0\n`).join('')}`;
    const none = '0'.repeat(16);
    expect(parseFacts(status(2, none) + net('lo'))).to.deep.equal({ confined: true, offline: true });
    expect(parseFacts(status(0, none) + net('lo')).confined).to.equal(false);
    expect(parseFacts(status(2, '0000000000000001') + net('lo')).confined).to.equal(false);
    expect(parseFacts(status(2, none) + net('lo', 'eth0')).offline).to.equal(false);
    expect(parseFacts('')).to.deep.equal({ confined: false, offline: false });
  });

  it('refuse a folder that somebody else could have made', () => {
    const long = path.join(dir, 'x'.repeat(80));
    const made = sandboxRuntimeDir(long);
    expect(sandboxRuntimeDir(long)).to.equal(made);
    expect(Buffer.byteLength(path.join(made, 'w-1234567-abcdef', 'gw.sock'))).to.be.lessThan(108);
    rmSync(made, { recursive: true });
    symlinkSync(dir, made);
    expect(() => sandboxRuntimeDir(long)).to.throw(/does not belong to this user alone/);
    rmSync(made);
  });

  it('let a call come over the socket of its own sandbox only', async () => {
    const [own, other] = [uuidv7<'sandbox'>(), uuidv7<'sandbox'>()];
    let owner: SandboxId | null = null;
    const seen: boolean[][] = [];
    const http = createHttp((incoming, response) => {
      seen.push([mayCome(incoming.socket, own), mayCome(incoming.socket, other)]);
      response.end();
    });
    const listener = {
      attach: (server: ReturnType<typeof createServer>) =>
        void server.on('connection', (socket: Socket) => http.emit('connection', socket)),
    };
    const socketPath = path.join(dir, 'gw.sock');
    const close = await openDoor(listener, socketPath, () => owner);
    const call = async () => {
      const sent = request({ socketPath, path: '/', agent: false });
      sent.end();
      const [answer] = (await once(sent, 'response')) as [NodeJS.ReadableStream];
      answer.resume();
      await once(answer, 'end');
    };
    await call();
    owner = own;
    await call();
    await close();
    expect(seen).to.deep.equal([
      [false, false],
      [true, false],
    ]);
  });
});
