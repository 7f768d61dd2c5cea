/**
 * The bounds of the listeners: bodies, ports, broken requests, headers, stopping.
 */
import { once } from 'node:events';
import net from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import { problemSchema } from '../../src/contract/common.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { readJsonBody } from '../../src/http/body.ts';
import { FAULT_STATUS } from '../../src/http/fault-status.ts';
import { createApp, type Route } from '../../src/http/route.ts';
import { createServer, type HttpListener } from '../../src/http/server.ts';
import { FAULT_CODES, RuntimeFault } from '../../src/kernel/faults.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { answerOf } from '../support/http-rig.ts';

/** Sends bytes as they are and collects the whole answer until the server closes. */
async function exchange(port: number, ...pieces: readonly (string | Buffer)[]): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  socket.on('error', () => {}); // the server may hang up on us
  const closed = once(socket, 'close');
  for (const piece of pieces) socket.write(piece);
  await closed;
  return answer;
}

describe('the listeners', () => {
  const open: HttpListener[] = [];
  const held = Promise.withResolvers<void>();
  const routes: readonly Route[] = [
    {
      method: 'POST',
      path: '/echo',
      async handle(ctx) {
        ctx.body = { length: JSON.stringify(await readJsonBody(ctx, { maxBytes: LIMITS.webBodyMaxBytes })).length };
      },
    },
    { method: 'GET', path: '/bug', handle: () => Promise.reject(new TypeError('secret words of a person')) },
    {
      method: 'GET',
      path: '/held',
      async handle(ctx) {
        await held.promise;
        ctx.body = { done: true };
      },
    },
    {
      method: 'GET',
      path: '/fault/:code',
      handle(ctx) {
        const code = FAULT_CODES.find((known) => ctx.path.endsWith(`/${known}`));
        throw new RuntimeFault(code ?? 'NOT_FOUND', 'Do this.');
      },
    },
  ];

  function listener(): HttpListener {
    const app = createApp({ log: silentLog, routes });
    const made = createServer({ callback: app.callback(), portVariable: 'HEPH_PORT', connectionsMax: 50, idleTimeoutMs: 60_000 });
    open.push(made);
    return made;
  }
  const start = (): Promise<number> => listener().start('127.0.0.1', 0);
  afterEach(async () => {
    held.resolve();
    await Promise.all(open.splice(0).map((one) => one.stop(1_000)));
  });

  const head = (length: number) =>
    `POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  it('takes a body of exactly the limit and refuses one byte more, without reading it, and hangs up', async () => {
    const port = await start();
    const body = (bytes: number) => JSON.stringify({ a: 'x'.repeat(bytes - 8) });
    const post = (text: string) =>
      fetch(`http://127.0.0.1:${port}/echo`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: text });
    const full = await answerOf(await post(body(LIMITS.webBodyMaxBytes)));
    expect([full.status, full.body.length]).to.deep.equal([200, LIMITS.webBodyMaxBytes]);
    const answer = await exchange(port, head(LIMITS.webBodyMaxBytes + 1));
    expect(answer).to.match(/^HTTP\/1\.1 413 /);
    expect(answer).to.match(/connection: close/i);
    expect(answer).to.include('"code":"BODY_TOO_LARGE"');
  });

  it('refuses a body that says no length when it grows over the limit', async () => {
    const port = await start();
    const chunked = 'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    const chunk = Buffer.concat([Buffer.from('40000\r\n'), Buffer.alloc(0x40000, 0x20), Buffer.from('\r\n')]);
    const answer = await exchange(port, chunked, chunk, chunk, chunk);
    expect(answer).to.match(/^HTTP\/1\.1 413 /);
  });

  it('answers a body that was cut off with nothing, and lives on', async () => {
    const port = await start();
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(`${head(100)}{"a":`);
    socket.destroy();
    await once(socket, 'close');
    expect((await fetch(`http://127.0.0.1:${port}/nothing`)).status).to.equal(404);
  });

  it('says "continue" to a client that asks before it sends', async () => {
    const port = await start();
    const asks = head(2).replace('\r\n\r\n', '\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n');
    const answer = await exchange(port, asks, '{}');
    expect(answer).to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
    const refused = await exchange(port, head(LIMITS.webBodyMaxBytes + 1).replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'));
    expect(refused).to.match(/^HTTP\/1\.1 413 /);
  });

  it('names the port and its variable when the port is busy', async () => {
    const port = await start();
    const failure = await listener()
      .start('127.0.0.1', port)
      .catch((error: Error) => error);
    expect(failure).to.be.instanceOf(Error);
    expect(String(failure))
      .to.include(`Port ${port}`)
      .and.to.include('HEPH_PORT')
      .and.to.match(/in use.*set HEPH_PORT to a free port/);
  });

  it('names the variable when the host is no address of this machine', async () => {
    const failure = await listener()
      .start('192.0.2.1', 0)
      .catch((error: Error) => error);
    expect(String(failure)).to.match(/192\.0\.2\.1 is no address of this machine.*HEPH_PORT/);
  });

  for (const [what, request, status] of [
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['an HTTP/1.1 request without a Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['headers of 17 KB', `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(17 * 1024)}\r\n\r\n`, 431],
  ] as const) {
    it(`answers ${what} with a ${status}`, async () => {
      const answer = await exchange(await start(), request);
      expect(answer).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
    });
  }

  it('gives every fault code its status, a stable type and the words of the fault', async () => {
    const port = await start();
    for (const code of FAULT_CODES) {
      const { status, body, headers } = await answerOf(await fetch(`http://127.0.0.1:${port}/fault/${code}`));
      const problem = problemSchema.parse(body);
      expect(status, code).to.equal(FAULT_STATUS[code].status);
      expect(problem).to.deep.include({
        code,
        status,
        detail: 'Do this.',
        type: `urn:heph:problem:${code.toLowerCase().replaceAll('_', '-')}`,
      });
      expect(headers.get('content-type')).to.match(/^application\/problem\+json/);
      if (status === 503 && code !== 'NO_MODEL') expect(headers.get('retry-after'), code).to.match(/^\d+$/);
    }
  });

  it('tells a bug as INTERNAL and none of its words', async () => {
    const { status, text, body } = await answerOf(await fetch(`http://127.0.0.1:${await start()}/bug`));
    expect([status, body.code]).to.deep.equal([500, 'INTERNAL']);
    expect(text).not.to.include('secret');
  });

  it('lets a request that was accepted finish when it stops, takes no new one, and then is gone', async () => {
    const made = listener();
    const port = await made.start('127.0.0.1', 0);
    const waiting = fetch(`http://127.0.0.1:${port}/held`);
    const idle = net.connect(port, '127.0.0.1');
    await once(idle, 'connect');
    await fetch(`http://127.0.0.1:${port}/nothing`);
    const stopped = made.stop(10_000);
    held.resolve();
    expect(await (await waiting).json()).to.deep.equal({ done: true });
    idle.destroy();
    await stopped;
    const refused = await fetch(`http://127.0.0.1:${port}/nothing`).catch((error: Error) => error);
    expect(refused).to.be.instanceOf(Error);
  });

  it('serves the connections of another server too, and waits for them when it stops', async () => {
    const made = listener();
    const other = net.createServer();
    made.attach(other);
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as net.AddressInfo;
    expect((await fetch(`http://127.0.0.1:${port}/nothing`)).status).to.equal(404);
    other.close();
    await made.stop(1_000);
  });

  it('does not call a client that hung up an error', async () => {
    const failures: string[] = [];
    const log = { ...silentLog, error: (event: string) => void failures.push(event) };
    const app = createApp({ log, routes });
    for (const code of ['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE']) app.emit('error', Object.assign(new Error(code), { code }));
    expect(failures).to.deep.equal([]);
    app.emit('error', new Error('real'));
    expect(failures).to.deep.equal(['http.connection_failed']);
    expect(app).to.be.instanceOf(Koa);
  });
});
