/**
 * Owns: proof that the deliveries of these specs are Slack's: Slack's own library takes, refuses and reads them as we do.
 */
import type { AddressInfo } from 'node:net';
import { App, HTTPReceiver } from '@slack/bolt';
import { expect } from 'chai';
import { silentLogger } from '../../src/slack/client.ts';
import { type Happening, readDelivery } from '../../src/slack/events.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { useSlack } from '../support/slack-rig.ts';
import { TEAM } from '../support/slack-scene.ts';
import { callback, changed, type DeliverOptions, deleted, deliver, message, SIGNING_SECRET } from '../support/slack-sender.ts';

const FILE = { subtype: 'file_share', files: [{ id: 'F0PLAN' }] };
const TOMBSTONE = { subtype: 'tombstone', text: 'This message was deleted.', user: 'USLACKBOT' };

/** What Slack sends, and what it is for us. */
const EVENTS: readonly (readonly [what: string, event: Record<string, unknown>, taken: Happening['type'] | null])[] = [
  ['a message', message('Why &lt;this&gt;?'), 'asked'],
  ['a message in a thread', message('And then?', { thread_ts: '1700000000.000001' }), 'asked'],
  ['a message with a file', message('See this', FILE), 'asked'],
  ['an edit', changed(message('old'), { text: 'new', edited: { user: 'U0ADA', ts: '1700000200.000000' } }), 'edited'],
  ['a deletion', deleted(message('gone')), 'deleted'],
  ['a tombstone', changed(message('gone'), TOMBSTONE), 'deleted'],
  ['the app being opened', { type: 'app_home_opened', user: 'U0ADA', channel: 'D0ADA', tab: 'messages', event_ts: '1.1' }, 'opened'],
  ['what a person looks at', { type: 'app_context_changed', user: 'U0ADA', event_ts: '1.2' }, null],
  ['an uninstall', { type: 'app_uninstalled' }, 'ended'],
  ['a revoked token', { type: 'tokens_revoked', tokens: { oauth: [], bot: ['U0BOT'] } }, 'ended'],
  ['a message in a channel', message('hello all', { channel: 'C0GENERAL', channel_type: 'channel' }), null],
];

describe('Slack’s own library beside ours', () => {
  /** Events that it gave to an app. */
  const read: { readonly team_id: string; readonly event_id: string; readonly event: { readonly type: string } }[] = [];
  let app: App;
  let port: number;
  before(async () => {
    const receiver = new HTTPReceiver({ signingSecret: SIGNING_SECRET, logger: silentLogger });
    app = new App({
      ...{ receiver, logger: silentLogger, clientOptions: { slackApiUrl: 'http://127.0.0.1:9/api/' } }, // it calls nobody
      authorize: async () => ({ botToken: 'xoxb-of-the-spec', botId: 'B0BOT', botUserId: 'U0BOT', teamId: TEAM }),
    });
    app.use(async ({ body, next }) => {
      read.push(body as never);
      await next();
    });
    port = ((await receiver.start(0)).address() as AddressInfo).port;
  });
  after(() => app.stop());
  beforeEach(() => void read.splice(0));

  for (const [what, event, taken] of EVENTS) {
    it(`reads ${what} as the event that we take it for`, async () => {
      const body = callback(event);
      expect((await deliver(port, body)).status).to.equal(200);
      await until('it is read', () => read.length > 0);
      expect(read[0]).to.deep.include({ team_id: TEAM, event_id: body['event_id'] });
      expect(read[0]?.event.type).to.equal(event['type']);
      const delivery = readDelivery(Buffer.from(JSON.stringify(body)));
      const happened = delivery.kind === 'event' ? (JSON.parse(delivery.event.payload) as Happening).type : null;
      expect(happened).to.equal(taken);
      if (delivery.kind === 'event') expect(delivery.event).to.include({ teamId: TEAM, eventId: body['event_id'] });
    });
  }

  it('leaves what the app itself said alone, and so do we', async () => {
    const own = callback(message('an answer', { user: 'U0BOT', bot_id: 'B0BOT' }));
    expect((await deliver(port, own)).status).to.equal(200);
    await deliver(port, callback(message('a question')));
    await until('the next one is read', () => read.length > 0);
    expect(read.map(({ event_id }) => event_id)).to.not.include(own['event_id']);
    expect(readDelivery(Buffer.from(JSON.stringify(own)))).to.deep.equal({ kind: 'ignored' });
  });

  describe('and the same request', () => {
    const database = useDatabase();
    const scene = useSlack(database);

    const REQUESTS: readonly (readonly [what: string, options: DeliverOptions, status: number])[] = [
      ['now', {}, 200],
      ['six minutes ago', { skewS: -360 }, 401],
      ['with another secret', { secret: 'another-secret-of-the-spec' }, 401],
      ['and changed on its way', { tamper: (body) => body.replace('U0ADA', 'U0EVE') }, 401],
      ['without a signature', { headers: { 'x-slack-signature': '' } }, 401],
    ];
    for (const [what, options, status] of REQUESTS) {
      it(`signed ${what} is answered alike`, async () => {
        const body = callback(message('x'));
        const both = [(await deliver(port, body, options)).status, (await deliver(scene.rig.webPort, body, options)).status];
        await scene.slack.idle();
        expect(both).to.deep.equal([status, status]);
      });
    }

    it('with the challenge of a new address is answered alike', async () => {
      const body = { type: 'url_verification', token: 't', challenge: 'abc' };
      const answers = await Promise.all([deliver(port, body), deliver(scene.rig.webPort, body)]);
      expect(answers.map((answer) => answer.body)).to.deep.equal([{ challenge: 'abc' }, { challenge: 'abc' }]);
    });
  });
});
