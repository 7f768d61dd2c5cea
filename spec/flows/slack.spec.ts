/**
 * Slack from a message to its answer, with real servers, the real client and the demo model: connected at the command line, killed on the way.
 */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { until } from '../support/actors.ts';
import { FakeSlack } from '../support/fake-slack.ts';
import { Flow } from '../support/flow.ts';
import { heph } from '../support/heph-command.ts';
import { run } from '../support/ledger.ts';
import { answer } from '../support/model-script.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { callback, deliver, message, SIGNING_SECRET } from '../support/slack-sender.ts';

describe('Slack', function () {
  this.timeout(150_000);
  let flow: Flow;
  let slack: FakeSlack;

  beforeEach(async () => {
    slack = await FakeSlack.start();
    flow = await Flow.open({
      script: answer(),
      env: {
        ...{ HEPH_SECRET_KEY: randomBytes(32).toString('base64'), HEPH_SLACK_SIGNING_SECRET: SIGNING_SECRET },
        HEPH_SLACK_API_URL: slack.apiUrl,
      },
    });
  });
  afterEach(async () => {
    await flow.close();
    await slack.stop();
  });

  /** The team is connected, and a user of it is the account of this machine. */
  async function connected(server: ServerProcess): Promise<void> {
    const { code, said } = await heph(server.opsPort, ['slack', 'connect', 'T0TEAM', '--workspace', 'home'], 'xoxb-token-of-the-spec');
    expect(code, said).to.equal(0);
    await deliver(server.port, callback(message('hello')));
    await until('the link is offered', () => slack.messages.length === 1, 30_000);
    const [, token] = /token=([^|]+)\|/.exec(String(slack.messages[0]?.text)) ?? [];
    const linked = await fetch(server.url('/slack/link'), { method: 'POST', body: new URLSearchParams({ token: String(token) }) });
    expect(linked.status).to.equal(200);
    slack.messages.length = 0;
  }

  it('answers in the thread of a message, and the app shows both', async () => {
    const server = await flow.server();
    await connected(server);
    const asked = message('Who are you?');
    expect((await deliver(server.port, callback(asked))).status).to.equal(200);
    await until('it is answered', () => slack.messages.length > 0, 60_000);
    expect(slack.messages[0]).to.include({ channel: 'D0ADA', threadTs: asked.ts, text: 'You asked: Who are you?' });
    const person = flow.person(server);
    const entries = await person.entries((await person.conversation()).id);
    expect(entries.map(({ surface, text }) => `${surface}: ${text}`)).to.deep.equal([
      'slack: Who are you?',
      'slack: You asked: Who are you?',
    ]);
    const metrics = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text();
    expect(metrics).to.match(/^heph_outbox_outcomes_total\{outcome="SENT"\} 2$/m);
    expect(metrics).to.match(/^heph_outbox_pending 0$/m);
  });

  it('answers once when the server is killed between the post and the note of it', async () => {
    const first = await flow.server();
    await connected(first);
    slack.fate = ({ method }) => (method === 'chat.postMessage' ? 'hangAccepted' : 'ok');
    await deliver(first.port, callback(message('Once?')));
    await until('it is posted', () => slack.messages.length > 0, 60_000);
    await first.kill();
    slack.fate = () => 'ok';
    // So that nobody waits: the lease and the time for a late arrival have passed.
    await run(flow.db, sql.unsafe`update outbox_action set lease_until = now() where state = 'SENDING' returning 1`);
    await flow.server();
    const state = async () => (await run(flow.db, sql.unsafe`select state from outbox_action where turn_id is not null`))[0]?.['state'];
    await until('it is uncertain', async () => (await state()) === 'UNCERTAIN', 30_000);
    await run(flow.db, sql.unsafe`update outbox_action set due_at = now() where state = 'UNCERTAIN' returning 1`);
    await until('it is found', async () => (await state()) === 'SENT', 30_000);
    expect(slack.messages.map(({ text }) => text)).to.deep.equal(['You asked: Once?']);
  });
});
