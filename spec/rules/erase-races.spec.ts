/**
 * Owns: proof that no copy of erased words is stored by a turn that ran meanwhile, whichever of the two comes first, and that erasures
 * meet each other and the other writers without a deadlock.
 */
import { expect } from 'chai';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { editQuestion } from '../../db/ledger/edit.ts';
import { type EndParams, endTurn, type NewEntry } from '../../db/ledger/end-turn.ts';
import { eraseEntries } from '../../db/ledger/erase.ts';
import { type Database, type Executor, sql } from '../../db/pool.ts';
import { type ConversationId, type EntryId, uuidv7 } from '../../src/kernel/ids.ts';
import { piSkeleton } from '../../src/kernel/pi-skeleton.ts';
import { useDatabase } from '../support/database.ts';
import { hold, stuck } from '../support/held.ts';
import { ask, claimOne, emptyLedger, makeHost, makeSandbox, type Person, run } from '../support/ledger.ts';
import { answer, claimed, scene } from '../support/scene.ts';
import { entryRow, makeThread, storeEntry } from '../support/threads.ts';

const CANARY = 'canary of the spec';

function summary(): NewEntry {
  return {
    id: uuidv7<'entry'>(),
    kind: 'SUMMARY',
    text: null,
    payload: JSON.stringify({ summary: CANARY }),
    copy: { skeleton: null, sourceIds: null },
  };
}

function searchResult(sourceIds: readonly EntryId[]): NewEntry {
  const message = { role: 'toolResult', toolCallId: 'c', toolName: 'search_conversation', content: [{ type: 'text', text: CANARY }] };
  const payload = JSON.stringify({ type: 'message', id: 'x', parentId: null, timestamp: '2026-10-08T07:12:03.120Z', message });
  return { id: uuidv7<'entry'>(), kind: 'TOOL_RESULT', text: null, payload, copy: { skeleton: piSkeleton(payload), sourceIds } };
}

interface Running {
  readonly db: Database;
  readonly person: Person;
  readonly mainId: ConversationId;
  /** The conversation of the running turn. */
  readonly conversationId: ConversationId;
  /** An entry that was there before the turn was claimed. */
  readonly old: EntryId;
  readonly end: (tx: Executor, entries: readonly NewEntry[]) => ReturnType<typeof endTurn>;
}

/** A turn that runs in the main conversation or in a thread of it, after a question that was there before. */
async function running(db: Database, where: 'main conversation' | 'thread'): Promise<Running> {
  const it = await scene(db);
  const old = await storeEntry(db, { person: it.person, conversationId: it.conversationId }, { kind: 'QUESTION', text: CANARY });
  const isThread = where === 'thread';
  const conversationId = isThread ? await makeThread(db, it.person, { mainId: it.conversationId, entryId: old }) : it.conversationId;
  const sandboxId = isThread ? (await makeSandbox(db, it.person, conversationId, it.hostId)).id : it.sandbox.id;
  await ask(db, it.person, conversationId);
  const grant = await claimOne(db, conversationId, sandboxId);
  if (!grant) throw new Error('not granted');
  const key = { runId: grant.runId, epoch: grant.epoch, sandboxId };
  const end = async (tx: Executor, entries: readonly NewEntry[]) => {
    const rows = await loadConversation(tx, conversationId);
    const params: EndParams = { ...key, conversationId, version: rows?.version ?? -1, status: 'DONE', error: null, entries };
    return endTurn(tx, params);
  };
  return { db, person: it.person, mainId: it.conversationId, conversationId, old, end };
}

describe('an erasure beside a running turn', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  const erase =
    (it: Running, ids: readonly EntryId[] = [it.old]) =>
    (tx: Executor) =>
      eraseEntries(tx, { ids, reach: it.person, graceMs: 30_000 });
  const edit = (it: Running) => (tx: Executor) => editQuestion(tx, { id: it.old, text: 'new words', owner: it.person });
  const wordsOf = async (it: Running) => {
    const rows = await run(
      it.db,
      sql.unsafe`select payload::text as payload, text, search_text, search_vector::text as v from mentor_entry`,
    );
    return JSON.stringify(rows);
  };

  for (const where of ['main conversation', 'thread'] as const) {
    for (const [what, change] of [
      ['erasure', erase],
      ['edit', edit],
    ] as const) {
      it(`of a ${where}: after an ${what} since its claim, its summary and its search results are stored erased, its answer is kept`, async () => {
        const it = await running(database.db, where);
        await it.db.transaction(change(it) as (tx: Executor) => Promise<unknown>);
        const [copy, result, said] = [summary(), searchResult([it.old]), answer('my answer')];
        expect(await it.end(it.db, [copy, result, said])).to.deep.include({ status: 'DONE', entryIds: [said.id] });
        expect(await entryRow(it.db, copy.id)).to.include({ erased: true, payload: null });
        expect(await entryRow(it.db, result.id)).to.include({ erased: true, payload: result.copy?.skeleton, sources: null });
        expect(await entryRow(it.db, said.id)).to.include({ erased: false, text: 'my answer' });
        expect(await wordsOf(it)).to.not.include(CANARY);
      });
    }

    it(`of a ${where}: an end that comes while an erasure is not committed yet waits for it, and stores no copies`, async () => {
      const it = await running(database.db, where);
      const erasure = await hold(it.db, erase(it));
      const copies = [summary(), searchResult([it.old])];
      const ending = it.end(it.db, [...copies, answer()]);
      await stuck(it.db, 'r.context_erasures');
      await erasure.commit();
      // In the main conversation the version has moved: the actor looks at its rows and ends again.
      const done = (await ending) ?? (await it.end(it.db, [...copies, answer()]));
      expect(done).to.include({ status: 'DONE' });
      for (const { id } of copies) expect((await entryRow(it.db, id)).erased).to.equal(true);
      expect(await wordsOf(it)).to.not.include(CANARY);
    });

    it(`of a ${where}: an erasure that comes while an end is not committed yet waits for it, and takes its copies`, async () => {
      const it = await running(database.db, where);
      const copies = [summary(), searchResult([it.old])];
      const ending = await hold(it.db, (tx) => it.end(tx, [...copies, answer()]));
      const erasure = it.db.transaction(erase(it));
      await stuck(it.db, 'with asked as materialized');
      expect(await ending.commit()).to.include({ status: 'DONE' });
      await erasure;
      for (const { id } of copies) expect((await entryRow(it.db, id)).erased).to.equal(true);
      expect(await wordsOf(it)).to.not.include(CANARY);
    });

    it(`of a ${where}: an end whose statement began before the erasure was committed sees its count all the same`, async () => {
      const it = await running(database.db, where);
      // The end has its snapshot and waits for the account; meanwhile the count rises and is committed.
      const account = await hold(it.db, (tx) =>
        tx.any(sql.unsafe`select 1 from account where id = ${it.person.accountId} for update` as never),
      );
      const copies = [summary(), searchResult([it.old])];
      const ending = it.end(it.db, [...copies, answer()]);
      await stuck(it.db, 'r.context_erasures');
      // (as an erasure does it, without its fence: the row is held FOR UPDATE before it is written)
      await it.db.transaction(async (tx) => {
        await tx.any(sql.unsafe`select 1 from mentor_conversation where id = ${it.mainId} for update` as never);
        await tx.any(sql.unsafe`update mentor_conversation set erasures = erasures + 1 where id = ${it.mainId} returning 1` as never);
      });
      await account.commit();
      expect(await ending).to.include({ status: 'DONE' });
      for (const { id } of copies) expect((await entryRow(it.db, id)).erased).to.equal(true);
    });

    it(`of a ${where}: an attempt that was claimed after the erasure keeps its summary and its search results`, async () => {
      const first = await scene(database.db);
      const at = { person: first.person, conversationId: first.conversationId };
      const gone = await storeEntry(database.db, at, { kind: 'QUESTION', text: 'gone' });
      await database.db.transaction((tx) => eraseEntries(tx, { ids: [gone], reach: 'all', graceMs: 1 }));
      await emptyLedger(database.db);
      const it = await running(database.db, where);
      const copies = [summary(), searchResult([it.old])];
      await it.end(it.db, [...copies, answer()]);
      for (const { id } of copies) expect((await entryRow(it.db, id)).erased).to.equal(false);
      expect((await entryRow(it.db, copies[1]?.id as EntryId)).sources).to.equal(`{${it.old}}`);
    });
  }

  it('of a thread is seen by its end, also between other writes to the main conversation', async () => {
    // FOR KEY SHARE passes by writes that leave the key alone: the count must be the newest one all the same.
    for (const order of ['before', 'after', 'both'] as const) {
      const it = await running(database.db, 'thread');
      const write = () => run(it.db, sql.unsafe`update mentor_conversation set version = version + 1 where id = ${it.mainId} returning 1`);
      const account = await hold(it.db, (tx) =>
        tx.any(sql.unsafe`select 1 from account where id = ${it.person.accountId} for update` as never),
      );
      const copy = summary();
      const ending = it.end(it.db, [copy, answer()]);
      await stuck(it.db, 'r.context_erasures');
      if (order !== 'after') await write();
      await it.db.transaction(async (tx) => {
        await tx.any(sql.unsafe`select 1 from mentor_conversation where id = ${it.mainId} for update` as never);
        await tx.any(sql.unsafe`update mentor_conversation set erasures = erasures + 1 where id = ${it.mainId} returning 1` as never);
      });
      if (order !== 'before') await write();
      await account.commit();
      expect(await ending).to.include({ status: 'DONE' });
      expect((await entryRow(it.db, copy.id)).erased, order).to.equal(true);
    }
  });

  it('leaves the turns of other people alone', async () => {
    const it = await running(database.db, 'main conversation');
    const theirs = await running(it.db, 'main conversation');
    await theirs.db.transaction(erase(theirs));
    const copy = summary();
    await it.end(it.db, [copy, answer()]);
    expect((await entryRow(it.db, copy.id)).erased).to.equal(false);
  });

  it('notes the count in a claim that is folded into the question', async () => {
    const it = await scene(database.db);
    const old = await storeEntry(it.db, { person: it.person, conversationId: it.conversationId }, { kind: 'QUESTION', text: 'old' });
    await it.db.transaction((tx) => eraseEntries(tx, { ids: [old], reach: it.person, graceMs: 1 }));
    const asked = await ask(it.db, it.person, it.conversationId, { sandboxId: it.sandbox.id });
    expect(asked.result).to.have.property('claimed').that.is.not.equal(null);
    const [row] = await run(it.db, sql.unsafe`select context_erasures from agent_run where id = ${asked.runId}`);
    expect(row).to.deep.equal({ context_erasures: 1 });
  });

  it('of the question itself while its end waits leaves no word of the answer', async () => {
    const it = await claimed(database.db);
    const question: EntryId = it.asked.entryId;
    const erasure = await hold(it.db, (tx) => eraseEntries(tx, { ids: [question], reach: it.person, graceMs: 30_000 }));
    const params = { ...it.key, conversationId: it.conversationId, status: 'DONE' as const, error: null, entries: [answer(CANARY)] };
    const version = async () => (await loadConversation(it.db, it.conversationId))?.version ?? -1;
    const ending = endTurn(it.db, { ...params, version: await version() });
    await stuck(it.db, 'r.context_erasures');
    await erasure.commit();
    expect(await ending).to.equal(null);
    expect(await endTurn(it.db, { ...params, version: await version() })).to.deep.include({ status: 'STOPPED', entryIds: [] });
    const rows = await run(it.db, sql.unsafe`select kind from mentor_entry`);
    expect(rows).to.deep.equal([{ kind: 'QUESTION' }]);
  });

  it('meets another erasure of the same trees in the other order without a deadlock', async () => {
    const [one, two] = [await running(database.db, 'thread'), await running(database.db, 'thread')];
    const more = async (it: Running) =>
      storeEntry(it.db, { person: it.person, conversationId: it.conversationId }, { kind: 'DIGEST', text: 'd' });
    for (let round = 0; round < 10; round++) {
      const [a, b, c, d] = [await more(one), await more(two), await more(two), await more(one)];
      const all = (ids: readonly EntryId[]) => database.db.transaction((tx) => eraseEntries(tx, { ids, reach: 'all', graceMs: 1 }));
      await Promise.all([all([a, b]), all([c, d])]);
      for (const id of [a, b, c, d]) expect((await entryRow(database.db, id)).erased).to.equal(true);
    }
  });

  it('takes part in a storm of questions, claims, ends and erasures in a main conversation and its threads, and leaves no copy', async () => {
    const it = await scene(database.db);
    const at = { person: it.person, conversationId: it.conversationId };
    const parent = await storeEntry(it.db, at, { kind: 'ANSWER', text: 'parent' });
    const hostId = await makeHost(it.db, 'storm');
    const threads = await Promise.all([1, 2].map(() => makeThread(it.db, it.person, { mainId: it.conversationId, entryId: parent })));
    const doomed = await Promise.all(Array.from({ length: 12 }, () => storeEntry(it.db, at, { kind: 'DIGEST', text: CANARY })));
    const turns = async (conversationId: ConversationId, sandboxId: typeof it.sandbox.id) => {
      for (let round = 0; round < 6; round++) {
        while ((await ask(it.db, it.person, conversationId)).result.kind !== 'written');
        let grant = await claimOne(it.db, conversationId, sandboxId);
        while (!grant) grant = await claimOne(it.db, conversationId, sandboxId);
        const key = { runId: grant.runId, epoch: grant.epoch, sandboxId };
        // What the model could see when the turn was claimed, or later.
        const seen = await run(it.db, sql.unsafe`select id from mentor_entry where text = ${CANARY}`);
        const entries = [...(seen.length > 0 ? [searchResult(seen.map((row) => row['id'] as EntryId)), summary()] : []), answer()];
        for (let done = null; !done; ) {
          const version = (await loadConversation(it.db, conversationId))?.version ?? -1;
          done = await endTurn(it.db, { ...key, conversationId, version, status: 'DONE', error: null, entries });
        }
      }
    };
    const places = [{ conversationId: it.conversationId, sandboxId: it.sandbox.id }];
    for (const conversationId of threads)
      places.push({ conversationId, sandboxId: (await makeSandbox(it.db, it.person, conversationId, hostId)).id });
    const erasures = async () => {
      for (const id of doomed) await it.db.transaction((tx) => eraseEntries(tx, { ids: [id], reach: it.person, graceMs: 1 }));
    };
    await Promise.all([...places.map((place) => turns(place.conversationId, place.sandboxId)), erasures()]);
    const rows = await run(it.db, sql.unsafe`select payload::text as payload, text from mentor_entry`);
    expect(JSON.stringify(rows)).to.not.include(CANARY);
  });
});
