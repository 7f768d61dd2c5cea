/**
 * The key of operators' programs, where commands run as the user of the server.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { runAdminCommand } from '../../src/cli/run.ts';
import { BrowserKey, createOpsListener, type HttpListener, operatorDoor } from '../../src/http/index.ts';
import { silentLog } from '../../src/kernel/log.ts';

describe('the operators of a server whose commands run as its user', () => {
  let listener: HttpListener;
  let opsUrl: string;
  const key = new BrowserKey();

  before(async () => {
    listener = createOpsListener({
      ...{ parts: [], started: () => true, actors: () => [], connectionsMax: 10, log: silentLog },
      metrics: { contentType: 'text/plain', text: async () => '' } as never,
      adminGuard: operatorDoor({ db: {} as never, tokens: [], metricsToken: null, local: true, keyboard: key, signIn: null, bearer: null }),
    });
    opsUrl = `http://127.0.0.1:${await listener.start('127.0.0.1', 0)}`;
  });
  after(() => listener.stop(0));

  const actors = (headers: Record<string, string>) => fetch(`${opsUrl}/admin/api/actors`, { headers });

  it('show the key that was printed, and nothing shorter, longer or empty', async () => {
    expect((await actors({ authorization: `Bearer ${key.operatorKey}` })).status).to.equal(200);
    for (const wrong of ['', key.operatorKey.slice(1), `${key.operatorKey}A`, key.path.split('=')[1] as string]) {
      expect((await actors({ authorization: `Bearer ${wrong}` })).status, wrong).to.equal(401);
    }
    expect((await actors({})).status).to.equal(401);
  });

  it('send it with each command, and read what to do without it', async () => {
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.setHeader('content-type', 'application/json').end('{"connections":[]}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    const io = { readInput: async () => '', out: say, err: say };
    expect(await runAdminCommand(['connection', 'list'], { ...io, opsUrl: at, token: 'the-key' })).to.equal(0);
    server.close();
    expect(seen).to.deep.equal(['Bearer the-key']);
    const refused = await (await actors({})).json();
    expect((refused as { detail: string }).detail).to.include('HEPH_OPS_TOKEN');
    expect(said).to.not.include('the-key');
  });
});
