/**
 * Owns: proof that an erasure takes the words, every copy of them and nothing else.
 * Does not own: edits and votes (edit-vote.spec.ts), races with the end of a turn (erase-races.spec.ts), the wire (entries-wire.spec.ts), what a skeleton holds (pi-skeleton.spec.ts).
 */
import { expect } from 'chai';
import { ERASE_BATCH_MAX, eraseEntries } from '../../db/ledger/erase.ts';
import type { Reach } from '../../db/ledger/trees.ts';
import { sql } from '../../db/pool.ts';
import { type ConversationId, type EntryId, uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeMain, makePerson, type Person, run } from '../support/ledger.ts';
import { answer, claimed, endDone, turnRow } from '../support/scene.ts';
import { CALL, CANARY, entryRow, makeThread, RESULT, type StoredEntry, SUMMARY, storeEntry } from '../support/threads.ts';

describe('erasing a message', () => {
  const database = useDatabase();
  let person: Person;
  let mainId: ConversationId;
  beforeEach(async () => {
    await emptyLedger(database.db);
    person = await makePerson(database.db);
    mainId = await makeMain(database.db, person);
  });

  const store = (entry: StoredEntry, conversationId = mainId) => storeEntry(database.db, { person, conversationId }, entry);
  const erase = (ids: readonly EntryId[], reach: Reach = person) =>
    database.db.transaction((tx) => eraseEntries(tx, { ids, reach, graceMs: 30_000 }));
  const isErased = async (id: EntryId) => (await entryRow(database.db, id)).erased;
  const versions = async () => {
    const rows = await run(database.db, sql.unsafe`select id, version, erasures from mentor_conversation order by id`);
    return new Map(rows.map((row) => [row['id'] as ConversationId, { version: row['version'], erasures: row['erasures'] }]));
  };
  /** Everything that the database holds, as text. */
  const wholeDatabase = async () => {
    const tables = await run(database.db, sql.unsafe`select tablename from pg_tables where schemaname = 'public'`);
    const rows = tables.map(async ({ tablename }) => {
      const all = await run(database.db, sql.unsafe`select t::text as row from ${sql.identifier([String(tablename)])} t`);
      return all.map(({ row }) => String(row)).join('\n');
    });
    return (await Promise.all(rows)).join('\n');
  };

  it('leaves its words nowhere in the database, and its place', async () => {
    const question = await ask(database.db, person, mainId, { text: CANARY });
    await run(database.db, sql.unsafe`update mentor_turn set page = ${JSON.stringify({ url: CANARY, title: CANARY })}::json returning 1`);
    const ids = [
      question.entryId,
      await store({ kind: 'ANSWER', text: CANARY, payload: CALL }),
      await store({ kind: 'DIGEST', text: CANARY }),
    ];
    const tool = await store({ kind: 'TOOL_RESULT', payload: RESULT, sourceIds: [question.entryId] });
    const summary = await store({ kind: 'SUMMARY', payload: SUMMARY });
    expect(await wholeDatabase()).to.include(CANARY);
    const [changed] = await erase(ids);
    expect(await wholeDatabase())
      .to.not.include(CANARY)
      .and.not.include('canary');
    expect(changed?.entryIds.toSorted()).to.deep.equal(ids.toSorted());
    for (const id of [...ids, tool, summary])
      expect(await entryRow(database.db, id)).to.include({ erased: true, text: null, vector: null });
    expect((await entryRow(database.db, question.entryId)).payload).to.equal(null);
    expect((await entryRow(database.db, summary)).payload).to.equal(null);
  });

  it('keeps the call of an answer and the result that belongs to it', async () => {
    const call = await store({ kind: 'ANSWER', text: 'I look.', payload: CALL });
    const result = await store({ kind: 'TOOL_RESULT', payload: RESULT });
    await erase([call, result], 'all');
    const [a, b] = [await entryRow(database.db, call), await entryRow(database.db, result)].map(
      (row) => JSON.parse(String(row.payload)).message,
    );
    expect(a.content).to.deep.equal([{ type: 'toolCall', id: 'call-1', name: 'bash', arguments: {} }]);
    expect(a.usage.totalTokens).to.equal(15);
    expect(b).to.include({ role: 'toolResult', toolCallId: 'call-1', toolName: 'bash' });
    expect(b.content).to.deep.equal([]);
  });

  it('erases a question without its answer, and an answer without its question', async () => {
    const [q, a] = [await store({ kind: 'QUESTION', text: 'q' }), await store({ kind: 'ANSWER', text: 'a', payload: CALL })];
    await erase([q]);
    expect([await isErased(q), await isErased(a)]).to.deep.equal([true, false]);
    await erase([a]);
    expect(await isErased(a)).to.equal(true);
  });

  it('changes nothing when it is repeated', async () => {
    const id = await store({ kind: 'QUESTION', text: 'q' });
    await erase([id]);
    const before = [await versions(), await wholeDatabase()];
    expect(await erase([id])).to.deep.equal([]);
    expect([await versions(), await wholeDatabase()]).to.deep.equal(before);
  });

  it('takes the summaries that come after it, and leaves those before it', async () => {
    const before = await store({ kind: 'SUMMARY', payload: SUMMARY });
    const id = await store({ kind: 'QUESTION', text: 'q' });
    const after = [await store({ kind: 'SUMMARY', payload: SUMMARY }), await store({ kind: 'SUMMARY', payload: SUMMARY })];
    await erase([id]);
    expect(await isErased(before)).to.equal(false);
    for (const summary of after) expect(await isErased(summary)).to.equal(true);
  });

  it('leaves a summary that says how far it goes and does not go as far', async () => {
    const early = await store({ kind: 'QUESTION', text: 'early' });
    const late = await store({ kind: 'QUESTION', text: 'late' });
    const summary = await store({ kind: 'SUMMARY', payload: SUMMARY, toSeq: 1 });
    await erase([late]);
    expect(await isErased(summary)).to.equal(false);
    await erase([early]);
    expect(await isErased(summary)).to.equal(true);
  });

  it('counts in path order: the answer to the first question comes before a question that waited', async () => {
    const it = await claimed(database.db);
    const at = { person: it.person, conversationId: it.conversationId };
    const waiting = await ask(it.db, it.person, it.conversationId, { text: 'next?' }); // seq 2
    const first = await storeEntry(it.db, at, { kind: 'ANSWER', text: 'first answer', payload: CALL, turnId: it.asked.turnId }); // seq 3
    const summary = await storeEntry(it.db, at, { kind: 'SUMMARY', payload: SUMMARY, turnId: it.asked.turnId, toSeq: 3 }); // seq 4
    const eraseOne = (id: EntryId) => it.db.transaction((tx) => eraseEntries(tx, { ids: [id], reach: it.person, graceMs: 1 }));
    await eraseOne(waiting.entryId); // its seq is smaller than that of the answer, its place on the path is behind it
    expect(await isErased(summary)).to.equal(false);
    await eraseOne(first);
    expect(await isErased(summary)).to.equal(true);
  });

  it('takes a thread’s summary when it erases what is before the thread, and not what is behind its parent', async () => {
    const before = await store({ kind: 'QUESTION', text: 'before' });
    const parent = await store({ kind: 'ANSWER', text: 'parent', payload: CALL });
    const behind = await store({ kind: 'QUESTION', text: 'behind' });
    const threadId = await makeThread(database.db, person, { mainId, entryId: parent });
    const own = await store({ kind: 'QUESTION', text: 'own' }, threadId);
    const summary = await store({ kind: 'SUMMARY', payload: SUMMARY }, threadId);
    await erase([behind]);
    expect(await isErased(summary)).to.equal(false);
    const changed = await erase([before]);
    expect(await isErased(summary)).to.equal(true);
    const told = new Map(changed.map((one) => [one.conversationId, one.entryIds]));
    expect(told).to.deep.equal(
      new Map([
        [mainId, [before]],
        [threadId, []],
      ]),
    );
    expect(await isErased(own)).to.equal(false);
  });

  it('takes a thread’s summary that covers a search result which quotes it, and not one from before that result', async () => {
    const parent = await store({ kind: 'ANSWER', text: 'parent', payload: CALL });
    const behind = await store({ kind: 'QUESTION', text: 'behind' });
    const threadId = await makeThread(database.db, person, { mainId, entryId: parent });
    const older = await store({ kind: 'SUMMARY', payload: SUMMARY }, threadId);
    const found = await store({ kind: 'TOOL_RESULT', payload: RESULT, sourceIds: [behind] }, threadId);
    const newer = await store({ kind: 'SUMMARY', payload: SUMMARY }, threadId);
    await erase([behind]);
    expect([await isErased(older), await isErased(found), await isErased(newer)]).to.deep.equal([false, true, true]);
  });

  it('takes a thread’s summary when it erases the thread’s parent', async () => {
    const parent = await store({ kind: 'ANSWER', text: 'parent', payload: CALL });
    const threadId = await makeThread(database.db, person, { mainId, entryId: parent });
    const summary = await store({ kind: 'SUMMARY', payload: SUMMARY }, threadId);
    await erase([parent]);
    expect(await isErased(summary)).to.equal(true);
  });

  it('in a thread leaves the summaries of the main conversation and of other threads', async () => {
    const parent = await store({ kind: 'ANSWER', text: 'parent', payload: CALL });
    const mainSummary = await store({ kind: 'SUMMARY', payload: SUMMARY });
    const [one, two] = [
      await makeThread(database.db, person, { mainId, entryId: parent }),
      await makeThread(database.db, person, { mainId, entryId: parent }),
    ];
    const id = await store({ kind: 'QUESTION', text: 'in the thread' }, one);
    const [own, other] = [await store({ kind: 'SUMMARY', payload: SUMMARY }, one), await store({ kind: 'SUMMARY', payload: SUMMARY }, two)];
    const before = await versions();
    await erase([id]);
    expect([await isErased(own), await isErased(other), await isErased(mainSummary)]).to.deep.equal([true, false, false]);
    const after = await versions();
    const steps = [mainId, one, two].map((c) => Number(after.get(c)?.version) - Number(before.get(c)?.version));
    expect(steps).to.deep.equal([0, 1, 0]);
    expect(Number(after.get(mainId)?.erasures)).to.equal(Number(before.get(mainId)?.erasures) + 1);
  });

  it('takes the search results of the whole tree that quote it, and no others', async () => {
    const id = await store({ kind: 'ANSWER', text: 'parent', payload: CALL });
    const other = await store({ kind: 'ANSWER', text: 'other', payload: CALL });
    const threadId = await makeThread(database.db, person, { mainId, entryId: id });
    const quoting = [
      await store({ kind: 'TOOL_RESULT', payload: RESULT, sourceIds: [other, id] }),
      await store({ kind: 'TOOL_RESULT', payload: RESULT, sourceIds: [id] }, threadId),
    ];
    const spared = [
      await store({ kind: 'TOOL_RESULT', payload: RESULT, sourceIds: [other] }),
      await store({ kind: 'TOOL_RESULT', payload: RESULT }),
    ];
    await erase([id]);
    for (const result of quoting) expect(await entryRow(database.db, result)).to.include({ erased: true, sources: null });
    for (const result of spared) expect(await isErased(result)).to.equal(false);
  });

  it('leaves a forged search result of another person alone', async () => {
    const id = await store({ kind: 'ANSWER', text: 'mine', payload: CALL });
    const stranger = await makePerson(database.db, person.workspaceId);
    const conversationId = await makeMain(database.db, stranger);
    const forged = await storeEntry(
      database.db,
      { person: stranger, conversationId },
      { kind: 'TOOL_RESULT', payload: RESULT, sourceIds: [id] },
    );
    await erase([id]);
    expect(await isErased(forged)).to.equal(false);
  });

  it('erases nothing of another account or workspace, and nothing that is not shown', async () => {
    // rule: R16
    const id = await store({ kind: 'QUESTION', text: 'mine' });
    const hidden = [await store({ kind: 'TOOL_RESULT', payload: RESULT }), await store({ kind: 'SUMMARY', payload: SUMMARY, toSeq: 0 })];
    const colleague = await makePerson(database.db, person.workspaceId);
    const elsewhere = await makePerson(database.db);
    for (const stranger of [colleague, { ...person, workspaceId: elsewhere.workspaceId }])
      expect(await erase([id], stranger)).to.deep.equal([]);
    expect(await erase(hidden)).to.deep.equal([]);
    expect([await isErased(id), ...(await Promise.all(hidden.map(isErased)))]).to.deep.equal([false, false, false]);
  });

  it('stops the queued turn of a question: it never runs', async () => {
    const asked = await ask(database.db, person, mainId);
    const [changed] = await erase([asked.entryId]);
    expect(changed).to.deep.include({ turnIds: [asked.turnId], sealedRunIds: [] });
    expect(await turnRow(database.db, asked.turnId)).to.include({ status: 'STOPPED', state: 'ENDED', slots: 0 });
  });

  it('stops the running turn of a question, whose end then stores nothing (J1)', async () => {
    const it = await claimed(database.db);
    const changed = await it.db.transaction((tx) => eraseEntries(tx, { ids: [it.asked.entryId], reach: it.person, graceMs: 30_000 }));
    expect(changed[0]).to.deep.include({ turnIds: [it.asked.turnId], sealedRunIds: [it.grant.runId] });
    expect(await turnRow(it.db, it.asked.turnId)).to.include({ status: 'STOPPED', state: 'LEASED', slots: 1 });
    expect(await endDone(it, [answer('late words')])).to.deep.include({ status: 'STOPPED', entryIds: [] });
    const rows = await run(it.db, sql.unsafe`select kind from mentor_entry where turn_id = ${it.asked.turnId}`);
    expect(rows).to.deep.equal([{ kind: 'QUESTION' }]);
    expect(await turnRow(it.db, it.asked.turnId)).to.include({ status: 'STOPPED', state: 'ENDED', slots: 0 });
  });

  it('leaves a turn that has ended as it is', async () => {
    const it = await claimed(database.db);
    await endDone(it);
    const changed = await it.db.transaction((tx) => eraseEntries(tx, { ids: [it.asked.entryId], reach: it.person, graceMs: 1 }));
    expect(changed[0]).to.deep.include({ turnIds: [], sealedRunIds: [] });
    expect((await turnRow(it.db, it.asked.turnId)).status).to.equal('DONE');
  });

  it('gives the same erased rows for the repeat of an erased question', async () => {
    const asked = await ask(database.db, person, mainId, { requestId: 'r' });
    await erase([asked.entryId]);
    const again = await ask(database.db, person, mainId, { requestId: 'r', text: 'Why?' });
    expect(again.result).to.deep.equal({ kind: 'repeat', turnId: asked.turnId, entryId: asked.entryId, sameText: true });
  });

  it('keeps what was spent', async () => {
    const it = await claimed(database.db);
    await run(
      it.db,
      sql.unsafe`insert into llm_usage_event (id, workspace_id, conversation_id, turn_id, run_id, epoch, attempt, api, model)
        values (${uuidv7()}, ${it.person.workspaceId}, ${it.conversationId}, ${it.asked.turnId}, ${it.grant.runId}, 1, 1, 'a', 'm') returning 1`,
    );
    await it.db.transaction((tx) => eraseEntries(tx, { ids: [it.asked.entryId], reach: it.person, graceMs: 1 }));
    expect(await run(it.db, sql.unsafe`select 1 as n from llm_usage_event`)).to.have.length(1);
  });

  it('takes entries of several people in one batch, up to its bound', async () => {
    const stranger = await makePerson(database.db);
    const conversationId = await makeMain(database.db, stranger);
    const ids = [
      await store({ kind: 'QUESTION', text: 'one' }),
      await storeEntry(database.db, { person: stranger, conversationId }, { kind: 'QUESTION', text: 'two' }),
    ];
    while (ids.length < ERASE_BATCH_MAX) ids.push(await store({ kind: 'DIGEST', text: 'more' }));
    const changed = await erase(ids, 'all');
    expect(new Set(changed.map((one) => one.accountId))).to.deep.equal(new Set([person.accountId, stranger.accountId]));
    expect(await Promise.all(ids.map(isErased))).to.not.include(false);
    const refused = await erase([...ids, uuidv7<'entry'>()], 'all').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Error);
  });

  it('still works after the erasure of its person was requested: it only takes words away', async () => {
    const id = await store({ kind: 'QUESTION', text: 'q' });
    await run(database.db, sql.unsafe`update account set erasure_requested_at = now() where id = ${person.accountId} returning 1`);
    await erase([id]);
    expect(await isErased(id)).to.equal(true);
  });

  it('lets the database refuse words in an erased row', async () => {
    const id = await store({ kind: 'SUMMARY', payload: SUMMARY });
    const write = run(database.db, sql.unsafe`update mentor_entry set erased_at = now() where id = ${id} returning 1`);
    expect(await write.catch((error: unknown) => error)).to.be.instanceOf(Error);
  });
});
