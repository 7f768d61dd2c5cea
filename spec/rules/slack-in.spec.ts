/**
 * Owns: proof of what a delivery of Slack comes to: one question for one message, whatever is repeated, swapped, edited or deleted; and who may ask.
 * cases: H1, H6
 * Does not own: the way back (outbox.spec.ts), the end of a connection (slack-disconnect.spec.ts).
 */
import { verifySlackRequest } from '@slack/bolt';
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { linkToken } from '../../src/slack/link.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { makePerson, run } from '../support/ledger.ts';
import { useSlack } from '../support/slack-rig.ts';
import { actions, connect } from '../support/slack-scene.ts';
import { callback, changed, deleted, deliver, message, SIGNING_SECRET, signed } from '../support/slack-sender.ts';

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

  describe('being edited or deleted', () => {
    beforeEach(() => link());

    it('changes the words of its question, and asks nothing again', async () => {
      const asked = message('old words');
      await send(asked);
      await send(changed(asked, { text: 'new words', edited: { user: 'U0ADA', ts: '1700000200.000000' } }));
      await send(changed(asked, { text: 'new words', attachments: [] })); // an unfurl
      expect((await turns()).map(({ text, status }) => [text, status])).to.deep.equal([['new words', 'QUEUED']]);
      await send(asked); // the first delivery again: it is known
      expect((await turns()).map(({ text }) => text)).to.deep.equal(['new words']);
    });

    it('changes its words while its turn runs, and is answered once', async () => {
      const asked = message('old words');
      await send(asked);
      const sandbox = await scene.sandbox();
      const { body: next } = await sandbox.next(5_000);
      await send(changed(asked, { text: 'new words' }));
      await sandbox.answer(next.run, 'To the old words.');
      await until('it is posted', () => scene.fake.messages.length > 0);
      await send(changed(asked, { text: 'newer words' }));
      expect((await turns()).map(({ text, status }) => [text, status])).to.deep.equal([['newer words', 'DONE']]);
      expect([scene.fake.messages.length, (await actions(database.db)).length]).to.deep.equal([1, 1]);
    });

    for (const [what, gone] of [
      ['deleted', deleted],
      [
        'a tombstone, since its thread has answers',
        (it_: Record<string, unknown>) => changed(it_, { subtype: 'tombstone', text: 'This message was deleted.', user: 'USLACKBOT' }),
      ],
    ] as const) {
      it(`is erased while its turn runs, and nothing is answered: ${what}`, async () => {
        const asked = message('erase me');
        await send(asked);
        const sandbox = await scene.sandbox();
        const { body: next } = await sandbox.next(5_000);
        expect(await send(gone(asked))).to.equal(200);
        expect((await turns()).map(({ status, erased, text }) => [status, erased, text])).to.deep.equal([['STOPPED', true, null]]);
        await sandbox.answer(next.run, 'too late');
        await until('the action is settled', async () => (await actions(database.db))[0]?.state === 'DEAD');
        expect([(await actions(database.db))[0]?.reason, scene.fake.messages.length]).to.deep.equal(['erased', 0]);
        expect(await send(gone(asked))).to.equal(200);
      });
    }

    it('loses its words when it is edited to nothing', async () => {
      const asked = message('words and a file', { subtype: 'file_share', files: [{ id: 'F0PLAN' }] });
      await send(asked);
      await send(changed(asked, { text: '' }));
      expect((await turns()).map(({ status, erased, text }) => [status, erased, text])).to.deep.equal([['STOPPED', true, null]]);
    });

    it('keeps its old words when the new ones are too many, and says so', async () => {
      const asked = message('old words');
      await send(asked);
      await send(changed(asked, { text: 'x'.repeat(32_001) }));
      expect([(await turns()).map(({ text }) => text), (await actions(database.db)).map(({ notice }) => notice)]).to.deep.equal([
        ...[['old words'], ['TOO_LONG']],
      ]);
    });

    it('is asked once, with its new words, when its edit overtakes it', async () => {
      const asked = message('old words', { ts: `${Math.floor(Date.now() / 1_000)}.000100` });
      await send(changed(asked, { text: 'new words' }));
      await send(asked);
      expect((await turns()).map(({ text }) => text)).to.deep.equal(['new words']);
      await send(changed(message('of last year', { ts: '1700000000.000100' }), { text: 'still of last year' }));
      expect(await turns()).to.have.length(1);
    });

    it('that became no question becomes none when it is edited', async () => {
      await run(database.db, sql.unsafe`delete from slack_identity returning 1`);
      const asked = message('before the link', { ts: `${Math.floor(Date.now() / 1_000)}.000200` });
      await send(asked);
      await link();
      await send(changed(asked, { text: 'after the link' }));
      expect([await turns(), (await actions(database.db)).map(({ notice }) => notice)]).to.deep.equal([[], ['LINK']]);
    });

    it('is not asked when its deletion overtakes it', async () => {
      const asked = message('gone before it came');
      await send(deleted(asked));
      await send(asked);
      expect(await turns()).to.deep.equal([]);
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

  describe('of somebody', () => {
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
      expect(await rows('mentor_conversation')).to.equal(0);
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
        expect([(await actions(database.db)).map((action) => action.notice), await rows('mentor_conversation')]).to.deep.equal([
          [notice],
          0,
        ]);
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
});
