/**
 * Where commands of the assistant run as the user of the server, a request from this machine proves nothing: what a command tries as the account is
 * refused, and the browser that opened the link from the terminal goes on. What the same user can do anyhow is in spec/decisions/0039.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { Flow } from '../support/flow.ts';
import { answer, calls } from '../support/model-server.ts';
import { WebClient } from '../support/person.ts';
import { newDataDir, type ServerProcess } from '../support/server-process.ts';

const UNISOLATED = { HEPH_SANDBOX_ISOLATION: 'off', HEPH_SANDBOX_ALLOW_UNISOLATED: 'true', HEPH_SANDBOX_WARM: '0' };
const QUESTION = '{"requestId":"forged-by-a-command","text":"Forged?"}';

/** What a command tries, and the answers that it gets: `name status`. */
function attempts({ port, opsPort }: ServerProcess): string {
  const web = `http://127.0.0.1:${port}`;
  const home = `${web}/workspaces/home/mentor`;
  const json = { 'content-type': 'application/json' };
  const post = { method: 'POST', body: QUESTION };
  const tries: readonly [string, string, object][] = [
    ['read', `${home}/conversation`, {}],
    ['search', `${home}/search?q=a`, {}],
    ['export', `${home}/export`, {}],
    ['stream', `${home}/events`, {}],
    ['me', `${web}/auth/me`, {}],
    ['ask', `${home}/questions`, { ...post, headers: json }],
    ['ask as the page', `${home}/questions`, { ...post, headers: { ...json, origin: web, 'sec-fetch-site': 'same-origin' } }],
    ['ask as localhost', `http://localhost:${port}/workspaces/home/mentor/questions`, { ...post, headers: json }],
    ['guess a cookie', `${home}/conversation`, { headers: { cookie: `heph_session=${'A'.repeat(43)}` } }],
    ['guess a link', `${web}/?key=${'A'.repeat(43)}`, { redirect: 'manual' }],
    ['the page', `${web}/`, {}],
    ['actors', `http://127.0.0.1:${opsPort}/admin/api/actors`, {}],
    ['guess the key', `http://127.0.0.1:${opsPort}/admin/api/models`, { headers: { authorization: `Bearer ${'A'.repeat(43)}` } }],
    ['give it a budget', `http://127.0.0.1:${opsPort}/admin/api/budgets`, { method: 'PUT', headers: json, body: '{}' }],
  ];
  const program = `
    for (const [name, url, init] of ${JSON.stringify(tries)})
      console.log(name + ": " + (await fetch(url, init).then((r) => r.status, (e) => e.message)));`;
  return `${process.execPath} --input-type=module -e '${program}'`;
}

describe('where commands run as the user of the server', function () {
  this.timeout(90_000);
  let flow: Flow;
  afterEach(() => flow.close());

  it('a command cannot act as the account, on no listener, and finds no secret in a file, an argument or the environment', async () => {
    flow = await Flow.open({ env: UNISOLATED });
    const dataDir = newDataDir();
    const server = await flow.server({ dataDir });
    const link = (await server.link()).replace('localhost', '127.0.0.1');
    const person = await new WebClient(`http://127.0.0.1:${server.port}`).signIn(link);
    flow.model.use((seen, n) => (n === 1 ? calls('bash', { command: attempts(server) }) : answer()(seen, n)));
    const { turn } = await person.ask('Try everything.');
    expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE' });

    const tried = flow.model.seen.at(-1)?.toolResults.join('\n') ?? '';
    const statuses = tried.split('\n').flatMap((line) => line.match(/^[a-z ]+: (.+)$/)?.[1] ?? []);
    expect(statuses, tried).to.deep.equal(Array.from({ length: 14 }, () => '401'));
    expect((await person.entries(turn.conversationId)).map(({ text }) => text)).to.not.include('Forged?');

    const secrets = [link.split('key=')[1] as string, person.cookie?.split('=')[1] as string];
    const readable = [...filesBelow(dataDir), `/proc/${server.pid}/environ`, `/proc/${server.pid}/cmdline`];
    for (const file of readable) for (const secret of secrets) expect(readFileSync(file, 'latin1'), file).to.not.include(secret);
    expect(JSON.stringify(server.lines), 'nor in the log').to.not.include(secrets[0]).and.not.include(secrets[1]);
  });

  it('the link works once, and the browser that opened it is the account on both listeners', async () => {
    flow = await Flow.open({ env: UNISOLATED });
    const server = await flow.server();
    const link = (await server.link()).replace('localhost', '127.0.0.1');
    const person = await new WebClient(`http://127.0.0.1:${server.port}`).signIn(link);
    expect(person.cookie).to.match(/^heph_session=/);
    const again = await fetch(link, { redirect: 'manual' });
    expect(again.status).to.equal(401);
    expect(await again.text()).to.include('Open the link from the terminal');
    const headers = { cookie: person.cookie as string };
    expect((await fetch(`http://127.0.0.1:${server.port}/auth/me`, { headers })).status).to.equal(200);
    expect((await fetch(`http://127.0.0.1:${server.port}/`, { headers })).status, 'the page, where it is built').to.be.oneOf([200, 404]);
    expect((await fetch(`http://127.0.0.1:${server.opsPort}/admin/api/actors`, { headers })).status).to.equal(200);
    expect((await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)).status, 'probes ask for nothing').to.equal(200);
    expect(server.output.join('\n'), 'a file can be read by a command').to.include('printed on a terminal only');
  });

  it('without such commands the page opens at once, as ever', async () => {
    flow = await Flow.open({ env: { HEPH_SANDBOX_ISOLATION: 'off', HEPH_SANDBOX_WARM: '0' } });
    const server = await flow.server();
    expect(await server.link()).to.equal(`http://localhost:${server.port}`);
    expect((await fetch(`http://127.0.0.1:${server.port}/`)).status, 'the page, where it is built').to.be.oneOf([200, 404]);
    expect((await fetch(`http://127.0.0.1:${server.port}/auth/me`)).status).to.equal(200);
    expect((await flow.person(server).send('GET', 'conversation')).status).to.be.oneOf([200, 404]);
  });
});

function filesBelow(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}
