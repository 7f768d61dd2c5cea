/**
 * Owns: proof that a weekly digest gets one note in Slack, written with the digest, posted and read back like any post, and only where its owner
 * may be shown it. The digest itself is a row here: nothing in this repository writes one yet.
 */
import { expect } from 'chai';
import { eraseEntries } from '../../db/ledger/erase.ts';
import { type Executor, sql } from '../../db/pool.ts';
import { type EntryId, uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, makeMain, run } from '../support/ledger.ts';
import { useOutbox } from '../support/outbox-scene.ts';
import { actions, origin, VOICE } from '../support/slack-scene.ts';

describe('the note of a weekly digest', () => {
  // rule: R14, R16
  const database = useDatabase();
  const outbox = useOutbox(database);
  let conversationId: Awaited<ReturnType<typeof makeMain>>;
  beforeEach(async () => {
    conversationId = await makeMain(database.db, outbox.person);
    await run(
      database.db,
      sql.unsafe`insert into slack_identity (team_id, user_id, account_id) values ('T0TEAM', 'U0ADA', ${outbox.person.accountId}) returning 1`,
    );
  });

  const askInSlack = () => ask(database.db, outbox.person, conversationId, { slack: origin() });
  async function writeDigest(db: Executor = database.db): Promise<EntryId> {
    const id = uuidv7<'entry'>();
    await run(
      db as never,
      sql.unsafe`insert into mentor_entry (id, workspace_id, conversation_id, seq, kind, surface, text, search_text)
        select ${id}, ${outbox.person.workspaceId}, ${conversationId}, coalesce(max(seq), 0) + 100, 'DIGEST', 'app', 'Your week', 'Your week'
        from mentor_entry where conversation_id = ${conversationId} returning 1`,
    );
    return id;
  }
  const notes = async () => (await actions(database.db)).filter(({ turn_id }) => turn_id === null);

  it('is enqueued with the digest, once, and says where it is', async () => {
    await askInSlack();
    await writeDigest();
    expect(await notes()).to.have.length(1);
    await outbox.work(outbox.open(), 'it is sent', (rows) => rows.every(({ state }) => state === 'SENT'));
    expect(outbox.slack.messages).to.have.length(1);
    expect(outbox.slack.messages[0]).to.include({
      ...{ channel: 'D0ADA', threadTs: null, text: `Your weekly digest is here. Read it in the app: ${VOICE.appUrl}` },
    });
  });

  it('is not there when the digest is not', async () => {
    await askInSlack();
    await database.db
      .transaction(async (tx) => {
        await writeDigest(tx);
        throw new Error('the digest is not written');
      })
      .catch(() => undefined);
    expect(await notes()).to.deep.equal([]);
  });

  for (const [what, fate, posts] of [
    ['that was taken', 'dropAccepted', 1],
    ['that was lost', 'drop', 2],
  ] as const) {
    it(`is read back in the channel after an unknown outcome: a post ${what}`, async () => {
      await askInSlack();
      await writeDigest();
      outbox.fates(fate);
      await outbox.work(outbox.open(), 'it is sent', (rows) => rows.every(({ state }) => state === 'SENT'));
      expect([outbox.slack.messages.length, outbox.slack.callsOf('chat.postMessage').length]).to.deep.equal([1, posts]);
      expect(outbox.slack.callsOf('conversations.history')).to.have.length(1);
    });
  }

  it('goes to nobody who never asked in Slack, whose team is gone, or whose user is somebody else now', async () => {
    await writeDigest();
    await askInSlack();
    await run(database.db, sql.unsafe`delete from slack_identity returning 1`);
    await writeDigest();
    await run(
      database.db,
      sql.unsafe`insert into slack_identity (team_id, user_id, account_id) values ('T0TEAM', 'U0ADA', ${outbox.person.accountId}) returning 1`,
    );
    await run(database.db, sql.unsafe`update slack_connection set state = 'ENDING', bot_token_sealed = null returning 1`);
    await writeDigest();
    expect(await notes()).to.deep.equal([]);
  });

  it('is not said when the digest is deleted meanwhile, or its owner may not be shown it any more', async () => {
    await askInSlack();
    const id = await writeDigest();
    await database.db.transaction((tx) => eraseEntries(tx, { ids: [id], reach: outbox.person, graceMs: 30_000 }));
    const rig = outbox.open();
    await outbox.work(rig, 'it is given up', ([row]) => row?.state === 'DEAD');
    expect((await outbox.one()).reason).to.equal('erased');
    await run(database.db, sql.unsafe`update workspace_member set visible = false returning 1`);
    await writeDigest();
    await outbox.work(rig, 'it is given up', (rows) => rows[1]?.state === 'DEAD');
    expect([(await actions(database.db))[1]?.reason, outbox.slack.messages.length]).to.deep.equal(['no_member', 0]);
  });
});
