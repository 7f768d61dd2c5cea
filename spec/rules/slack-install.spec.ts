/**
 * Owns: proof of "Add to Slack": who may begin, what Slack is asked for, and that only who began can finish, once, in the same browser.
 */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { sql } from '../../db/pool.ts';
import { findTeam } from '../../db/slack/connections.ts';
import { SLACK_EVENTS_PATH } from '../../src/http/slack/post-events.ts';
import { SCOPES } from '../../src/slack/admin.ts';
import { useDatabase } from '../support/database.ts';
import { FakeSlack } from '../support/fake-slack.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, type Person, run } from '../support/ledger.ts';
import { openSlack } from '../support/slack-rig.ts';
import { SECRETS, TEAM } from '../support/slack-scene.ts';

describe('the installation of the Slack app', () => {
  const database = useDatabase();
  const rigs = useRigs(database);
  let fake: FakeSlack;
  let person: Person;
  let rig: HttpRig;

  before(async () => {
    fake = await FakeSlack.start();
  });
  after(() => fake.stop());
  beforeEach(async () => {
    await emptyLedger(database.db);
    person = await makePerson(database.db);
    rig = await open();
    await role('admin');
  });

  const open = (who: Person = person) =>
    rigs({
      person: who,
      slack: openSlack(database.db, fake, {
        ...{ appUrl: 'https://heph.example.com', app: { clientId: 'client-id', clientSecret: 'client-secret' } },
      }),
    });
  const role = (name: string) => run(database.db, sql.unsafe`update workspace_member set role = ${name} returning 1`);
  const begin = async () => {
    const answered = await rig.send('GET', `/slack/install?workspace=${rig.slug}`);
    const url = new URL(answered.headers.get('location') ?? 'none:');
    return {
      answered,
      url,
      state: url.searchParams.get('state') ?? '',
      cookie: (answered.headers.get('set-cookie') ?? '').split(';')[0] ?? '',
    };
  };
  const finish = (query: Record<string, string>, cookie: string, at: HttpRig = rig) =>
    at.send('GET', `/slack/oauth/callback?${new URLSearchParams(query)}`, { headers: { cookie } });

  it('sends an administrator to Slack with the scopes that are needed, and stores the token that comes back', async () => {
    const { answered, url, state, cookie } = await begin();
    expect(answered.status).to.equal(302);
    expect(`${url.origin}${url.pathname}`).to.equal(`${new URL(fake.apiUrl).origin}/oauth/v2/authorize`);
    expect(Object.fromEntries(url.searchParams)).to.include({
      ...{ scope: 'chat:write,im:history', client_id: 'client-id', redirect_uri: 'https://heph.example.com/slack/oauth/callback' },
    });
    expect(answered.headers.get('set-cookie'))
      .to.match(/Secure/)
      .and.to.match(/HttpOnly/);
    const done = await finish({ code: 'code-of-the-spec', state }, cookie);
    expect([done.status, done.text.includes(TEAM)]).to.deep.equal([200, true]);
    const found = await findTeam(database.db, TEAM);
    expect([found?.workspaceId, SECRETS.open(found?.tokenSealed as Buffer, String(found?.id))]).to.deep.equal([
      person.workspaceId,
      'xoxb-granted',
    ]);
  });

  it('is not begun by a plain member, nor for a workspace of others', async () => {
    await role('member');
    expect((await begin()).answered.status).to.equal(403);
    await role('admin');
    expect((await rig.send('GET', '/slack/install?workspace=nowhere')).status).to.equal(403);
    expect((await rig.send('GET', '/slack/install')).status).to.equal(403);
  });

  it('is not finished in another browser, by another account, with another state or after the role is gone', async () => {
    const { state, cookie } = await begin();
    const good = { code: 'code-of-the-spec', state };
    const other = await open(await makePerson(database.db));
    await role('admin');
    for (const [what, answered] of [
      ['no cookie', await finish(good, '')],
      ['another state', await finish({ ...good, state: `${state}x` }, cookie)],
      ['another account', await finish(good, cookie, other)],
      ['no consent', await finish({ error: 'access_denied', state }, cookie)],
      ['a wrong code', await finish({ ...good, code: 'x' }, cookie)],
    ] as const) {
      expect([answered.status, await findTeam(database.db, TEAM)], what).to.deep.equal([400, null]);
    }
    await role('member');
    expect([(await finish(good, cookie)).status, await findTeam(database.db, TEAM)]).to.deep.equal([400, null]);
  });

  it('asks in its manifest for what this server takes, and for nothing else', () => {
    const manifest = parse(readFileSync(new URL('../../deploy/slack/manifest.yaml', import.meta.url), 'utf8'));
    expect(manifest.oauth_config.scopes).to.deep.equal({ bot: [...SCOPES] });
    expect(manifest.oauth_config.redirect_urls).to.deep.equal(['https://heph.example.com/slack/oauth/callback']);
    expect(manifest.settings.event_subscriptions).to.deep.equal({
      request_url: `https://heph.example.com${SLACK_EVENTS_PATH}`,
      bot_events: ['message.im', 'app_home_opened', 'app_uninstalled', 'tokens_revoked'],
    });
    expect(manifest.features.agent_view).to.have.keys('agent_description');
    // Tokens are kept as they are; nothing here would renew one.
    expect(manifest.settings.token_rotation_enabled).to.equal(false);
  });
});
