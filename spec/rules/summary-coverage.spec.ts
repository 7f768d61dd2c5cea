/**
 * Which entries a stored summary says that it covers: an erasure of one of them must find it (seed, "Compaction").
 */
import { expect } from 'chai';
import { deriveEntries } from '../../actors/conversation/pi-entries.ts';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn, type NewEntry } from '../../db/ledger/end-turn.ts';
import { sql } from '../../db/pool.ts';
import { type EntryId, uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, run } from '../support/ledger.ts';
import { answer, scene } from '../support/scene.ts';

describe('a stored summary', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  const summary = (firstKeptId: EntryId | null): NewEntry => ({
    id: uuidv7<'entry'>(),
    kind: 'SUMMARY',
    text: null,
    payload: '{}',
    firstKeptId,
  });

  async function open() {
    const it = await scene(database.db);
    const { db, person, conversationId } = it;
    /** Claims the oldest question and ends its turn with these entries. */
    const end = async (entries: readonly NewEntry[], status: 'DONE' | 'FAILED' = 'DONE') => {
      const grant = await claimOne(db, conversationId, it.sandbox.id);
      if (!grant) throw new Error('not granted');
      const version = (await loadConversation(db, conversationId))?.version ?? -1;
      const error = status === 'FAILED' ? { code: 'TURN_FAILED', text: 'It failed.', detail: null } : null;
      const key = { runId: grant.runId, epoch: grant.epoch, sandboxId: it.sandbox.id };
      return endTurn(db, { ...key, conversationId, version, status, error, entries });
    };
    const asks = async (text = 'Why?') => (await ask(db, person, conversationId, { text })).entryId;
    /** From, to and the place of what covers nothing but itself. */
    const coverage = async () => {
      const [row] = await run(
        db,
        sql.unsafe`select from_seq, to_seq from mentor_entry where conversation_id = ${conversationId} and kind = 'SUMMARY' order by seq desc limit 1`,
      );
      return [row?.['from_seq'], row?.['to_seq']];
    };
    return { ...it, end, asks, coverage };
  }

  it('covers the first entry to the one before the first that it keeps', async () => {
    const { end, asks, coverage } = await open();
    await asks();
    await end([answer()]);
    const second = await asks();
    await end([answer()]);
    await asks();
    await end([summary(second), answer()]);
    expect(await coverage()).to.deep.equal([1, 2]);
  });

  it('is counted in path order, where an answer stands before a question that was asked meanwhile', async () => {
    const { end, asks, coverage } = await open();
    await asks();
    const waiting = await asks();
    await end([answer()]); // seq 3, on the path before seq 2
    await end([summary(waiting), answer()]);
    expect(await coverage()).to.deep.equal([1, 3]);
  });

  it('that keeps entries of its own turn covers that turn up to them', async () => {
    const { end, asks, coverage } = await open();
    await asks();
    const [first, second] = [answer('Let me see.'), answer()];
    await end([first, second, summary(second.id)]);
    expect(await coverage()).to.deep.equal([1, 2]);
    await asks();
    const third = answer();
    await end([third, summary(third.id)]);
    expect(await coverage(), 'the question of the turn is the last').to.deep.equal([1, 5]);
  });

  it('that keeps nothing, or something that was not stored, covers all before itself', async () => {
    const { end, asks, coverage } = await open();
    await asks();
    const nothing = summary(null);
    await end([{ ...nothing, firstKeptId: nothing.id }]);
    expect(await coverage()).to.deep.equal([1, 1]);
    await asks();
    // A failed end stores only its summary; what that keeps stayed behind.
    await end([summary(uuidv7<'entry'>())], 'FAILED');
    expect(await coverage()).to.deep.equal([1, 3]);
  });

  it('that keeps everything covers nothing', async () => {
    const { end, asks, coverage } = await open();
    const first = await asks();
    await end([summary(first), answer()]);
    expect(await coverage()).to.deep.equal([null, null]);
  });

  it('does not escape an erasure by naming an entry of somewhere else', async () => {
    const elsewhere = await open();
    const foreign = await elsewhere.asks();
    const other = await scene(database.db);
    await ask(other.db, other.person, other.conversationId);
    const grant = await claimOne(other.db, other.conversationId, other.sandbox.id);
    if (!grant) throw new Error('not granted');
    const key = { runId: grant.runId, epoch: grant.epoch, sandboxId: other.sandbox.id, conversationId: other.conversationId };
    const version = (await loadConversation(other.db, other.conversationId))?.version ?? -1;
    await endTurn(other.db, { ...key, version, status: 'DONE', error: null, entries: [summary(foreign), answer()] });
    const [row] = await run(
      other.db,
      sql.unsafe`select from_seq, to_seq from mentor_entry where conversation_id = ${other.conversationId} and kind = 'SUMMARY'`,
    );
    expect(row).to.deep.equal({ from_seq: 1, to_seq: 1 });
  });

  it('of a thread that keeps entries of its parent covers none of its own', async () => {
    const it = await open();
    const { db, person, workspaceId } = { ...it, workspaceId: it.person.workspaceId };
    const parentEntry = await it.asks();
    const thread = uuidv7();
    await run(
      db,
      sql.unsafe`insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id)
        values (${thread}, ${workspaceId}, ${person.accountId}, ${it.conversationId}, ${parentEntry}) returning 1`,
    );
    await run(db, sql.unsafe`update sandbox set conversation_id = ${thread} where id = ${it.sandbox.id} returning 1`);
    const conversationId = thread as typeof it.conversationId;
    await ask(db, person, conversationId);
    const grant = await claimOne(db, conversationId, it.sandbox.id);
    if (!grant) throw new Error('not granted');
    const version = (await loadConversation(db, conversationId))?.version ?? -1;
    const key = { runId: grant.runId, epoch: grant.epoch, sandboxId: it.sandbox.id, conversationId };
    await endTurn(db, { ...key, version, status: 'DONE', error: null, entries: [summary(parentEntry), answer()] });
    const [row] = await run(
      db,
      sql.unsafe`select from_seq, to_seq from mentor_entry where conversation_id = ${thread} and kind = 'SUMMARY'`,
    );
    expect(row).to.deep.equal({ from_seq: null, to_seq: null });
  });

  it('names its first kept entry only when that is an id', () => {
    const entry = (firstKeptEntryId: unknown) => ({ type: 'compaction', id: uuidv7(), parentId: null, timestamp: '', firstKeptEntryId });
    const kept = (value: unknown) => {
      const derived = deriveEntries([entry(value)], true);
      return derived.kind === 'entries' ? derived.entries[0]?.firstKeptId : derived.why;
    };
    const id = uuidv7();
    expect([id, 'x', 7, null, undefined].map(kept)).to.deep.equal([id, null, null, null, null]);
  });
});
