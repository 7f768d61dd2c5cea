/**
 * Two people and a program on a real server: invited at the command line, signed in at an issuer, each with a conversation of its own; then
 * one is removed, and the server is replaced.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Flow } from '../support/flow.ts';
import { freePort } from '../support/free-port.ts';
import { heph } from '../support/heph-command.ts';
import { SpecIssuer } from '../support/issuer.ts';
import { answer } from '../support/model-script.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { SignInBrowser } from '../support/sign-in-browser.ts';
import { signInEnv } from '../support/sign-in-rig.ts';
import { SseClient } from '../support/sse-client.ts';

const MENTOR = '/workspaces/forge/mentor';

describe('people who sign in', function () {
  this.timeout(240_000);
  let flow: Flow;
  let issuer: SpecIssuer;
  afterEach(async () => {
    await flow.close();
    await issuer.close();
  });

  async function signIn(port: number, name: string): Promise<SignInBrowser> {
    const sub = name.toLowerCase();
    issuer.person = { sub, email: `${sub}@example.com`, email_verified: true, name };
    const browser = new SignInBrowser({ origin: `http://localhost:${port}`, port });
    const arrived = await browser.open('/auth/login?return=/session');
    expect(arrived.body.account.displayName).to.equal(name);
    return browser;
  }

  async function ask(browser: SignInBrowser, text: string): Promise<string> {
    const asked = await browser.fetch('POST', `${MENTOR}/questions`, { body: { requestId: randomUUID(), text } });
    expect(asked.status, asked.text).to.equal(202);
    for (;;) {
      const { body } = await browser.fetch('GET', `${MENTOR}/turns/${asked.body.turn.id}`);
      if (body.status === 'DONE') break;
      expect(body.status).to.be.oneOf(['QUEUED', 'RUNNING']);
    }
    const { body } = await browser.fetch('GET', `${MENTOR}/conversations/${asked.body.turn.conversationId}/entries`);
    return body.entries.map((entry: { kind: string }) => entry.kind).join();
  }

  it('have a conversation of their own each, until they are removed; a new server knows them still', async () => {
    issuer = await SpecIssuer.start();
    const port = await freePort();
    flow = await Flow.open({ script: answer(), env: { ...signInEnv(issuer, `http://localhost:${port}`), HEPH_MENTOR_LIVE_PING: '100ms' } });
    const start = (at: number): Promise<ServerProcess> => flow.server({ env: { HEPH_PORT: String(at) } });
    const server = await start(port);
    const done = async (args: string) => {
      const { code, said } = await heph(server.opsPort, args.split(' '));
      expect(code, said).to.equal(0);
      return said;
    };
    await done('workspace add forge --name Forge');
    await done('member add Ada@example.com --workspace forge --role operator');
    await done('member add bob@example.com --workspace forge');
    expect(await done('member list --workspace forge')).to.match(/^forge +bob@example.com +bob +member +invited +on +\S+$/m);

    const [ada, bob] = [await signIn(port, 'Ada'), await signIn(port, 'Bob')];
    expect(await Promise.all([ask(ada, 'Of Ada?'), ask(bob, 'Of Bob?')])).to.deep.equal(['question,answer', 'question,answer']);
    const headers = { authorization: `Bearer ${await issuer.token({ sub: 'bob' })}` };
    const program = await new SignInBrowser({ origin: `http://localhost:${port}`, port }).fetch('GET', `${MENTOR}/conversation`, {
      headers,
    });
    expect(program.body).to.deep.equal((await bob.fetch('GET', `${MENTOR}/conversation`)).body);

    const stream = await SseClient.connect(`http://localhost:${port}${MENTOR}/events`, { headers: { cookie: bob.cookieHeader } });
    expect((await stream.next('snapshot')).conversations).to.have.length(1);
    await done('member remove bob@example.com --workspace forge');
    await stream.ended;
    expect((await bob.fetch('GET', `${MENTOR}/conversation`)).body.code).to.equal('WORKSPACE_NOT_FOUND');
    expect(await done('workspace list')).to.match(/^forge +Forge +1$/m);
    expect((await heph(server.opsPort, ['member', 'role', 'eve@example.com', 'admin', '--workspace', 'forge'])).code).to.equal(1);
    expect((await heph(server.opsPort, ['member', 'add', 'eve@example.com'])).code).to.equal(2);

    await server.stop();
    expect(server.output.join()).to.include(`http://localhost:${port}`);
    await start(port);
    expect(await ask(ada, 'And now?')).to.equal('question,answer,question,answer');
    expect(server.lines.map((line) => JSON.stringify(line)).join()).to.not.match(/example\.com|client secret/);
  });
});
