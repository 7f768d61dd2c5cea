/**
 * Owns: proof of who may ask in Slack, and what everybody else is told: how to link an account, or why not.
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { linkToken } from '../../src/slack/link.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { run } from '../support/ledger.ts';
import { useSlack } from '../support/slack-rig.ts';
import { actions } from '../support/slack-scene.ts';
import { message, SIGNING_SECRET } from '../support/slack-sender.ts';

describe('somebody in Slack', () => {
  const database = useDatabase();
  const scene = useSlack(database);
  const { link, send, turns } = scene;
  const conversations = async () => (await run(database.db, sql.unsafe`select id from mentor_conversation`)).length;

  it('who is not known and opens the app is greeted once, with a link that serves', async () => {
    const opened = { type: 'app_home_opened', user: 'U0ADA', channel: 'D0ADA', tab: 'messages' };
    await send(opened);
    await send(opened);
    const [offer, ...more] = await actions(database.db);
    expect([offer?.notice, more.length]).to.deep.equal(['WELCOME', 0]);
    const used = await scene.rig.send('POST', '/slack/link', {
      raw: new URLSearchParams({ token: linkToken(SIGNING_SECRET, String(offer?.id)) }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(used.status).to.equal(200);
    await send(opened);
    await send(message('hello'));
    const sandbox = await scene.sandbox();
    await sandbox.answer((await sandbox.next(5_000)).body.run, 'Hello.');
    await until('both are said', () => scene.fake.messages.length > 1);
    expect(scene.fake.messages.map(({ text }) => text.split('|')[0])).to.deep.equal([
      `Hello, I am Heph. <http://127.0.0.1/slack/link?token=${linkToken(SIGNING_SECRET, String(offer?.id))}`,
      'Hello.',
    ]);
    expect(scene.fake.messages[0]).to.include({ channel: 'D0ADA', threadTs: null });
  });

  it('who is not known is answered with a link, which serves once and links only when it is confirmed', async () => {
    await send(message('hello'));
    expect(await conversations()).to.equal(0);
    const [offer] = await actions(database.db);
    const token = linkToken(SIGNING_SECRET, String(offer?.id));
    const page = await scene.rig.send('GET', `/slack/link?token=${token}`);
    expect([
      page.status,
      page.text.includes('U0ADA'),
      page.text.includes('T0TEAM'),
      page.text.includes('<form method="post"'),
    ]).to.deep.equal([200, true, true, true]);
    const use = (given: string, headers = {}) =>
      scene.rig.send('POST', '/slack/link', {
        raw: new URLSearchParams({ token: given }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      });
    expect((await use(token, { origin: 'https://evil.example.com' })).status).to.equal(403);
    expect((await use(`${token.slice(0, -2)}AA`)).status).to.equal(410);
    expect((await scene.rig.send('GET', '/slack/link?token=x')).status).to.equal(410);
    const used = await Promise.all([use(token), use(token)]);
    expect(used.map(({ status }) => status).sort()).to.deep.equal([200, 410]);
    expect((await scene.rig.send('GET', `/slack/link?token=${token}`)).status).to.equal(410);
    await send(message('now'));
    expect((await turns()).map(({ text }) => text)).to.deep.equal(['now']);
  });

  it('whose link is older than an hour gets another one', async () => {
    await send(message('hello'));
    const [offer] = await actions(database.db);
    await run(database.db, sql.unsafe`update outbox_action set created_at = now() - interval '61 minutes' returning 1`);
    expect((await scene.rig.send('GET', `/slack/link?token=${linkToken(SIGNING_SECRET, String(offer?.id))}`)).status).to.equal(410);
    await send(message('hello again'));
    expect((await actions(database.db)).map(({ notice }) => notice)).to.deep.equal(['LINK', 'LINK']);
  });

  for (const [what, notice, spoil] of [
    ['is no member any more', 'NO_MEMBER', sql.unsafe`update workspace_member set active = false returning 1`],
    ['has AI switched off', 'AI_CHOICE', sql.unsafe`update workspace_member set ai_allowed = false returning 1`],
  ] as const) {
    it(`who ${what} is told so, and gets no conversation`, async () => {
      await link();
      await run(database.db, spoil);
      await send(message('hello'));
      expect([(await actions(database.db)).map((action) => action.notice), await conversations()]).to.deep.equal([[notice], 0]);
    });
  }

  it('who writes more than a question may have is told so', async () => {
    await link();
    await send(message('x'.repeat(32_000)));
    expect([(await turns()).length, (await actions(database.db)).length]).to.deep.equal([1, 0]);
    await send(message('x'.repeat(32_001)));
    expect([(await turns()).length, (await actions(database.db))[0]?.notice]).to.deep.equal([1, 'TOO_LONG']);
  });

  it('whose account is being erased is told so', async () => {
    await link();
    await run(database.db, sql.unsafe`update account set erasure_requested_at = now() returning 1`);
    await send(message('hello'));
    expect((await actions(database.db))[0]?.notice).to.equal('PERSON_ERASED');
  });
});
