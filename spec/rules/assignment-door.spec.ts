/**
 * The door of a runner in a pod: it takes one assignment, confirms the very same again, and nothing else.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { bring } from '../../sandbox-runner/assign.ts';
import { awaitAssignment } from '../../sandbox-runner/assignment-door.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';

const assignment = (credential: string) => ({
  gateway: 'http://heph:8081',
  credential,
  conversationId: uuidv7(),
  bash: true,
  workDir: '/w',
});

describe('a runner in a pod', () => {
  const dirs: string[] = [];
  const closed = new AbortController();
  after(() => {
    closed.abort();
    for (const dir of dirs) rmSync(dir, { recursive: true });
  });

  function open() {
    const dir = mkdtempSync(path.join(tmpdir(), 'heph-door-'));
    dirs.push(dir);
    const socket = path.join(dir, 'assignment.sock');
    return { socket, assigned: awaitAssignment(socket, closed.signal) };
  }

  it('takes one assignment, confirms the same when its answer was lost, and refuses every other', async () => {
    const { socket, assigned } = open();
    const [first, second] = [assignment('one'), assignment('two')];
    expect(await bring(socket, JSON.stringify(first))).to.equal('{"accepted":true}');
    expect(await assigned).to.deep.equal(first);
    expect(await bring(socket, JSON.stringify(first))).to.equal('{"accepted":true}');
    for (const other of [JSON.stringify(second), `${JSON.stringify(first)} `, '{}']) {
      expect(await bring(socket, other), other).to.equal('{"accepted":false}');
    }
  });

  it('refuses what is no assignment, and still waits for one', async () => {
    const { socket, assigned } = open();
    for (const wrong of ['', 'not json', '{"type":"drain"}', '[]', 'x'.repeat(100_000)]) {
      expect(await bring(socket, wrong), wrong.slice(0, 20)).to.equal('{"accepted":false}');
    }
    const right = assignment('right');
    expect(await bring(socket, JSON.stringify(right))).to.equal('{"accepted":true}');
    expect(await assigned).to.deep.equal(right);
  });

  it('is not held up by somebody who connects and says nothing', async () => {
    const { socket, assigned } = open();
    const silent = connect(socket);
    await once(silent, 'connect');
    await bring(socket, JSON.stringify(assignment('right')));
    expect((await assigned).credential).to.equal('right');
    silent.destroy();
  });

  it('opens its door to its own user only, also where a process before it has left a file', async () => {
    const dir = mkdtempSync(path.join(tmpdir(), 'heph-door-'));
    dirs.push(dir);
    const socket = path.join(dir, 'assignment.sock');
    writeFileSync(socket, 'left behind');
    const assigned = awaitAssignment(socket, closed.signal);
    await bring(socket, JSON.stringify(assignment('right')));
    await assigned;
    expect(statSync(socket).mode & 0o777).to.equal(0o600);
  });
});
