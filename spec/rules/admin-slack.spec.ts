/**
 * `heph slack …` against a running operations listener and a fake Slack: what is connected, and what is missing.
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { findTeam } from '../../db/slack/connections.ts';
import { storeEvent } from '../../db/slack/inbox.ts';
import { runAdminCommand } from '../../src/cli/run.ts';
import { createOpsListener, type HttpListener, requireLocalAdmin } from '../../src/http/index.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { SecretBox } from '../../src/kernel/secret-box.ts';
import { createMetrics } from '../../src/ops/index.ts';
import { SlackAdmin } from '../../src/slack/admin.ts';
import { Disconnector } from '../../src/slack/disconnect.ts';
import { useDatabase } from '../support/database.ts';
import { FakeSlack } from '../support/fake-slack.ts';
import { emptyLedger, makePerson, type Person, run } from '../support/ledger.ts';
import { SECRETS, TEAM, TOKEN } from '../support/slack-scene.ts';

describe('Slack, as an operator sets it', () => {
  const database = useDatabase();
  let fake: FakeSlack;
  let listener: HttpListener;
  let opsUrl: string;
  let person: Person;
  let slug: string;

  before(async () => {
    fake = await FakeSlack.start();
  });
  after(() => fake.stop());
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate slack_event`);
    fake.calls.length = 0;
    fake.fate = () => 'ok';
    fake.scopes = 'chat:write,im:history';
    person = await makePerson(database.db);
    const [workspace] = await run(database.db, sql.unsafe`select slug from workspace where id = ${person.workspaceId}`);
    slug = String(workspace?.['slug']);
    await listen();
  });
  afterEach(() => listener.stop(1_000));

  async function listen(extra: Partial<ConstructorParameters<typeof SlackAdmin>[0]> = {}): Promise<void> {
    const disconnector = new Disconnector({ db: database.db, log: silentLog, actors: { entriesErased: () => undefined } });
    const slack = new SlackAdmin({
      ...{ db: database.db, secrets: SECRETS, client: { apiUrl: fake.apiUrl, timeoutMs: 1_000 }, hasSigningSecret: true },
      ...{ publicUrl: 'https://heph.example.com', disconnect: (team, why) => disconnector.end(team, why), ...extra },
    });
    const parts = { parts: [], started: () => true, metrics: createMetrics(), actors: () => [], connectionsMax: 50, log: silentLog };
    listener = createOpsListener({ ...parts, slack, adminGuard: requireLocalAdmin });
    opsUrl = `http://127.0.0.1:${await listener.start('127.0.0.1', 0)}`;
  }

  async function heph(args: string, input = ''): Promise<{ code: number; said: string }> {
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    return { code: await runAdminCommand(args.split(' '), { opsUrl, readInput: async () => input, out: say, err: say }), said };
  }

  it('is connected with the bot token on standard input, which is tried and then sealed', async () => {
    expect(await heph(`slack connect ${TEAM} --workspace ${slug}`, `${TOKEN}\n`)).to.deep.equal({
      ...{ code: 0, said: `The team ${TEAM} is connected to the workspace ${slug}.\n` },
    });
    expect(fake.callsOf('auth.test')[0]?.token).to.equal(TOKEN);
    const found = await findTeam(database.db, TEAM);
    expect(SECRETS.open(found?.tokenSealed as Buffer, String(found?.id))).to.equal(TOKEN);
    expect(found?.tokenSealed.includes(TOKEN)).to.equal(false);
    expect((await heph('slack list')).said).to.match(new RegExp(`${TEAM} +${slug} +ACTIVE`));
    expect((await heph(`slack connect ${TEAM} --workspace ${slug}`, 'xoxb-a-new-token')).code).to.equal(0);
    expect((await findTeam(database.db, TEAM))?.id).to.equal(found?.id);
    expect((await heph(`slack disconnect ${TEAM}`)).code).to.equal(0);
    expect((await heph('slack list')).said).to.equal('There are none.\n');
    expect((await heph(`slack disconnect ${TEAM}`)).said).to.match(/^The team T0TEAM is not connected/);
  });

  it('is refused with a sentence that says what is wrong, and never with the token', async () => {
    const other = await makePerson(database.db);
    const [its] = await run(database.db, sql.unsafe`select slug from workspace where id = ${other.workspaceId}`);
    await heph(`slack connect ${TEAM} --workspace ${slug}`, TOKEN);
    for (const [args, fate, why] of [
      [`T0ELSE --workspace ${slug}`, 'ok', 'This token belongs to the team T0TEAM, not to T0ELSE.'],
      [`${TEAM} --workspace nowhere`, 'ok', 'There is no workspace "nowhere".'],
      [`${TEAM} --workspace ${its?.['slug']}`, 'ok', 'The team or the workspace has another connection.'],
      [`${TEAM} --workspace ${slug}`, { error: 'invalid_auth' }, 'Slack does not take this token (invalid_auth).'],
      [`${TEAM} --workspace ${slug}`, { status: 500 }, 'Slack does not take this token ('],
      [`nonsense! --workspace ${slug}`, 'ok', 'must be the id of a Slack team'],
    ] as const) {
      fake.fate = () => fate;
      const { code, said } = await heph(`slack connect ${args}`, TOKEN);
      expect([code, said.includes(why), said.includes(TOKEN)], said).to.deep.equal([1, true, false]);
    }
    fake.fate = () => 'ok';
    fake.scopes = 'chat:write';
    expect((await heph(`slack connect ${TEAM} --workspace ${slug}`, TOKEN)).said).to.match(/^The token lacks the scopes im:history\./);
    await listener.stop(1_000);
    await listen({ secrets: new SecretBox({ current: null, old: null }) });
    expect((await heph(`slack connect ${TEAM} --workspace ${slug}`, TOKEN)).said).to.match(/HEPH_SECRET_KEY/);
  });

  it('is checked: what is missing comes with what to do about it', async () => {
    await listener.stop(1_000);
    await listen({ hasSigningSecret: false, publicUrl: null, secrets: new SecretBox({ current: null, old: null }) });
    const nothing = (await heph('slack check')).said;
    for (const what of ['HEPH_SLACK_SIGNING_SECRET', 'HEPH_SECRET_KEY', 'HEPH_PUBLIC_URL', 'heph slack connect'])
      expect(nothing).to.include(what);
    await listener.stop(1_000);
    await listen();
    await heph(`slack connect ${TEAM} --workspace ${slug}`, TOKEN);
    expect((await heph('slack check')).said).to.match(
      /deliveries of T0TEAM today +no +Send the app a message\..*https:\/\/heph\.example\.com\/slack\/events/,
    );
    const event = { teamId: TEAM, eventId: 'Ev1', channelId: 'D0ADA', deletedTs: null, messageTs: null, payload: '{}' };
    expect(await storeEvent(database.db, event)).to.equal(true);
    expect((await heph('slack check')).said).to.not.match(/ no /);
    fake.fate = () => ({ error: 'token_revoked' });
    expect((await heph('slack check')).said).to.match(/team T0TEAM +no +Slack answers token_revoked/);
  });
});
