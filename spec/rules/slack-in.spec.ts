/**
 * Owns: proof of what a delivery of Slack comes to: one question for one message, whatever is repeated; and what stays of its files.
 * cases: H1
 * Does not own: edits (slack-edit.spec.ts), who may ask (slack-people.spec.ts), the way back (outbox.spec.ts), the end of a connection
 * (slack-disconnect.spec.ts).
 */
import { verifySlackRequest } from '@slack/bolt';
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { makePerson, run } from '../support/ledger.ts';
import { useSlack } from '../support/slack-rig.ts';
import { actions, connect } from '../support/slack-scene.ts';
import { callback, changed, deliver, message, SIGNING_SECRET, signed } from '../support/slack-sender.ts';

describe('a message in Slack', () => {
  const database = useDatabase();
  const scene = useSlack(database);
  const { link, send, turns } = scene;
  const rows = async (table: 'slack_event' | 'mentor_conversation') => {
    const what = table === 'slack_event' ? sql.fragment`slack_event` : sql.fragment`mentor_conversation`;
    return Number((await run(database.db, sql.unsafe`select count(*)::int as n from ${what}`))[0]?.['n']);
  };

  it('becomes one question, however often Slack delivers it, and its answer comes once, in its thread', async () => {
    await link();
    const asked = message('Why &lt;this&gt; &amp; that?');
    const body = callback(asked);
    const headers = { 'x-slack-retry-num': '1', 'x-slack-retry-reason': 'http_timeout' };
    const answers = await Promise.all([
      deliver(scene.rig.webPort, body),
      deliver(scene.rig.webPort, body, { headers }),
      deliver(scene.rig.webPort, body, { headers }),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    await until('it is asked', async () => (await turns()).length > 0);
    expect(await send(asked)).to.equal(200); // the same message under another event
    const [turn, ...more] = await turns();
    expect([turn?.surface, turn?.text, more.length]).to.deep.equal(['slack', 'Why <this> & that?', 0]);
    const [conversation] = await run(
      database.db,
      sql.unsafe`select slack_team_id, slack_user_id, slack_channel_id from mentor_conversation`,
    );
    expect(conversation).to.include({ slack_team_id: 'T0TEAM', slack_user_id: 'U0ADA', slack_channel_id: 'D0ADA' });
    const [stored] = await run(database.db, sql.unsafe`select payload, outcome from slack_event limit 1`);
    expect(stored).to.deep.equal({ payload: null, outcome: 'asked' });
    const sandbox = await scene.sandbox();
    const { body: next } = await sandbox.next(5_000);
    await sandbox.answer(next.run, 'Because **of it**.');
    await until('it is posted', () => scene.fake.messages.length > 0);
    expect(scene.fake.messages).to.have.length(1);
    expect(scene.fake.messages[0]).to.include({ channel: 'D0ADA', threadTs: asked.ts, text: 'Because *of it*.' });
  });

  it('is acknowledged when it is stored, before it is asked', async () => {
    await link();
    const [locked, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const held = database.db.transaction(async (tx) => {
      await tx.any(sql.unsafe`select id from account for update` as never); // no question can be written
      locked.resolve();
      await free.promise;
    });
    await locked.promise;
    expect((await deliver(scene.rig.webPort, callback(message('x')))).status).to.equal(200);
    expect([await rows('slack_event'), (await turns()).length]).to.deep.equal([1, 0]);
    free.resolve();
    await held;
    await scene.slack.idle();
    expect((await turns()).map(({ text }) => text)).to.deep.equal(['x']);
  });

  it('of one of several teams is asked in that team’s workspace, by whom its user is there', async () => {
    const other = await makePerson(database.db);
    await connect(database.db, other, 'T0OTHER');
    await link();
    await run(
      database.db,
      sql.unsafe`insert into slack_identity (team_id, user_id, account_id) values ('T0OTHER', 'U0ADA', ${other.accountId}) returning 1`,
    );
    await send(message('here'));
    await send(message('there'), { team_id: 'T0OTHER' });
    const asked = await run(
      database.db,
      sql.unsafe`select t.workspace_id, t.account_id, e.text from mentor_turn t join mentor_entry e on e.id = t.question_entry_id order by t.created_at`,
    );
    expect(asked).to.deep.equal([
      { workspace_id: scene.person.workspaceId, account_id: scene.person.accountId, text: 'here' },
      { workspace_id: other.workspaceId, account_id: other.accountId, text: 'there' },
    ]);
  });

  describe('being delivered', () => {
    it('is taken when Slack has signed it, byte for byte, and within five minutes on either side', async () => {
      const body = callback(message('x'));
      for (const [what, options, status] of [
        ['now', {}, 200],
        ['299 s old', { skewS: -299 }, 200],
        ['302 s old', { skewS: -302 }, 401],
        ['298 s early', { skewS: 298 }, 200],
        ['302 s early', { skewS: 302 }, 401],
        ['another secret', { secret: 'another-secret-of-the-spec' }, 401],
        ['a changed body', { tamper: (text: string) => text.replace('U0ADA', 'U0EVE') }, 401],
        ['no signature', { headers: { 'x-slack-signature': '' } }, 401],
        ['half a signature', { headers: { 'x-slack-signature': 'v0=00' } }, 401],
        ['no time', { headers: { 'x-slack-request-timestamp': 'NaN' } }, 401],
      ] as const) {
        expect((await deliver(scene.rig.webPort, body, options)).status, what).to.equal(status);
      }
      await scene.slack.idle();
    });

    it('is signed the way that Slack’s own library checks', () => {
      const body = JSON.stringify(callback(message('ü \u{1F600}')));
      const { 'x-slack-signature': signature = '', 'x-slack-request-timestamp': timestamp = '' } = signed(body);
      const headers = { 'x-slack-signature': signature, 'x-slack-request-timestamp': Number(timestamp) };
      verifySlackRequest({ signingSecret: SIGNING_SECRET, body, headers });
      expect(() => verifySlackRequest({ signingSecret: SIGNING_SECRET, body: `${body} `, headers })).to.throw();
    });

    it('is answered with the challenge of a new address, and too large a body is refused', async () => {
      const answered = await deliver(scene.rig.webPort, { type: 'url_verification', token: 't', challenge: 'abc' });
      expect([answered.status, answered.body]).to.deep.equal([200, { challenge: 'abc' }]);
      expect((await deliver(scene.rig.webPort, { type: 'event_callback', fill: 'x'.repeat(1024 * 1024) })).status).to.equal(413);
    });

    it('leaves nothing behind when it is nothing for us', async () => {
      await link();
      for (const event of [
        message('of a bot', { bot_id: 'B0X' }),
        message('joined', { subtype: 'channel_join' }),
        message('in a channel', { channel: 'C0GENERAL', channel_type: 'channel' }),
        { type: 'app_home_opened', user: 'U0ADA', channel: 'D0ADA', tab: 'home' },
        { type: 'app_context_changed', user: 'U0ADA' },
        { type: 'tokens_revoked', tokens: { oauth: ['U0ADA'], bot: [] } },
        { type: 'message' },
      ]) {
        expect(await send(event)).to.equal(200);
      }
      expect(await send(message('of another team'), { team_id: 'T0OTHER' })).to.equal(200);
      expect([await rows('slack_event'), await rows('mentor_conversation')]).to.deep.equal([0, 0]);
      await send(message('of ourselves', { user: 'U0BOT' }));
      await send(message('  \u200B '));
      expect([(await turns()).length, (await actions(database.db)).length]).to.deep.equal([0, 0]);
    });
  });

  describe('with a file', () => {
    beforeEach(() => link());
    const FILES = { subtype: 'file_share', files: [{ id: 'F0PLAN', name: 'plan.pdf', url_private: 'https://files.example.com/plan.pdf' }] };

    it('is asked with its words, and its person is told that the file is not read', async () => {
      const asked = message('What does it say?', FILES);
      await send(asked);
      await send(asked); // the same message under another event
      expect((await turns()).map(({ text, status }) => [text, status])).to.deep.equal([['What does it say?', 'QUEUED']]);
      expect((await actions(database.db)).map(({ notice }) => notice)).to.deep.equal(['FILE_LEFT_OUT']);
      const sandbox = await scene.sandbox();
      await sandbox.answer((await sandbox.next(5_000)).body.run, 'Nothing that I know.');
      await until('both are said', () => scene.fake.messages.length > 1);
      expect(scene.fake.messages.map(({ threadTs, text }) => [threadTs, text])).to.deep.equal([
        [asked.ts, 'I cannot read files yet: I answer your words alone, and did not keep the file.'],
        [asked.ts, 'Nothing that I know.'],
      ]);
      await send(changed(asked, { text: 'And this?' }));
      expect((await turns()).map(({ text }) => text)).to.deep.equal(['And this?']);
      const kept = await run(
        database.db,
        sql.unsafe`select 1 from mentor_entry e where e::text like '%F0PLAN%' or e::text like '%plan.pdf%'`,
      );
      expect(kept).to.deep.equal([]);
    });

    it('and no word is answered with a note, and gets no conversation', async () => {
      await send(message('', FILES));
      expect([(await actions(database.db)).map(({ notice }) => notice), await rows('mentor_conversation')]).to.deep.equal([
        ...[['FILE_ONLY'], 0],
      ]);
    });
  });
});
