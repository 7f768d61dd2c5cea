/**
 * The ledger's rules against a real PostgreSQL: questions, claims and ends.
 */
import { expect } from 'chai';
import type { Offer } from '../../db/ledger/claim.ts';
import { findOrCreateMain, loadConversation } from '../../db/ledger/conversation.ts';
import { checkAttempt } from '../../db/ledger/fence.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import { sql } from '../../db/pool.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { ask, claimFor, claimOne, emptyLedger, makeMain, makePerson, makeSandbox, run, TIMES } from '../support/ledger.ts';
import { answer, claimed, endDone, scene, turnRow } from '../support/scene.ts';

describe('the ledger', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  it('gives two first writes of an account one main conversation', async () => {
    const { db } = database;
    const person = await makePerson(db);
    const ids = await Promise.all(Array.from({ length: 8 }, () => findOrCreateMain(db, person.workspaceId, person.accountId)));
    expect(new Set(ids).size).to.equal(1);
  });

  it('refuses to delete an account that owns a conversation', async () => {
    const { db, person } = await scene(database.db);
    await run(db, sql.unsafe`delete from workspace_member where account_id = ${person.accountId} returning 1`);
    const failure = await run(db, sql.unsafe`delete from account where id = ${person.accountId} returning 1`).catch(
      (error: Error) => error,
    );
    expect(failure).to.be.instanceOf(Error);
  });

  it('writes the question and a queued turn together, in the order of seq', async () => {
    // rule: R3
    const { db, person, conversationId } = await scene(database.db, 0);
    const asked = [await ask(db, person, conversationId, { text: 'one' }), await ask(db, person, conversationId, { text: 'two' })];
    const rows = await run(
      db,
      sql.unsafe`
      select e.text, e.seq, t.status from mentor_entry e join mentor_turn t on t.question_entry_id = e.id and t.question_seq = e.seq
      where e.conversation_id = ${conversationId} order by e.seq`,
    );
    expect(rows).to.deep.equal([
      { text: 'one', seq: 1, status: 'QUEUED' },
      { text: 'two', seq: 2, status: 'QUEUED' },
    ]);
    expect(asked.map((one) => one.result.kind)).to.deep.equal(['written', 'written']);
  });

  it('returns the same rows for a repeated requestId and refuses it for other words', async () => {
    // rule: R2
    const { db, person, conversationId } = await scene(database.db);
    const first = await ask(db, person, conversationId, { requestId: 'one', text: 'Why?' });
    const again = await ask(db, person, conversationId, { requestId: 'one', text: 'Why?' });
    expect(again.result).to.deep.equal({ kind: 'repeat', turnId: first.turnId, entryId: first.entryId, sameText: true });
    const other = await ask(db, person, conversationId, { requestId: 'one', text: 'Who?' });
    expect(other.result).to.include({ kind: 'repeat', sameText: false });
    const [count] = await run(db, sql.unsafe`select count(*) as n from mentor_turn where conversation_id = ${conversationId}`);
    expect(count).to.deep.equal({ n: 1 });
  });

  it('holds at most max-follow-ups queued turns', async () => {
    // rule: R10
    const { db, person, conversationId } = await scene(database.db, 0);
    for (let n = 0; n < 10; n++) expect((await ask(db, person, conversationId)).result.kind).to.equal('written');
    expect((await ask(db, person, conversationId)).result.kind).to.equal('full');
  });

  it('still repeats an accepted question while the queue is full', async () => {
    const { db, person, conversationId } = await scene(database.db, 0);
    await ask(db, person, conversationId, { requestId: 'first', maxFollowUps: 1 });
    expect((await ask(db, person, conversationId, { requestId: 'first', maxFollowUps: 1 })).result.kind).to.equal('repeat');
  });

  it('tells a writer with an old version to look again, and writes nothing', async () => {
    const { db, person, conversationId } = await scene(database.db, 0);
    const before = await loadConversation(db, conversationId);
    await ask(db, person, conversationId);
    const stop = await stopTurn(db, { conversationId, version: before?.version ?? -1, turnId: uuidv7<'turn'>(), graceMs: 1 });
    expect(stop).to.equal(null);
  });

  it('accepts no question after an erasure was requested', async () => {
    // rule: R12
    const { db, person, conversationId } = await scene(database.db);
    await run(db, sql.unsafe`update account set erasure_requested_at = clock_timestamp() where id = ${person.accountId} returning 1`);
    expect((await ask(db, person, conversationId)).result.kind).to.equal('erased');
  });

  it('claims the first question of a conversation and never two at once', async () => {
    // rule: R1
    const { db, person, conversationId, sandbox } = await scene(database.db);
    const [first, second] = [await ask(db, person, conversationId), await ask(db, person, conversationId)];
    const grants = await Promise.all(Array.from({ length: 6 }, () => claimOne(db, conversationId, sandbox.id)));
    const won = grants.filter((grant) => grant !== undefined);
    expect(won.map((grant) => grant.turnId)).to.deep.equal([first.turnId]);
    expect(await turnRow(database.db, first.turnId)).to.deep.equal({
      status: 'RUNNING',
      attempt: 1,
      error_code: null,
      state: 'LEASED',
      epoch: 1,
      slots: 1,
    });
    expect((await turnRow(database.db, second.turnId)).status).to.equal('QUEUED');
  });

  it('refuses a second running turn of a conversation by its own index', async () => {
    // rule: R1
    const it = await claimed(database.db);
    const second = await ask(it.db, it.person, it.conversationId);
    const failure = await run(
      it.db,
      sql.unsafe`
      update mentor_turn set status = 'RUNNING', attempt = 1, started_at = clock_timestamp() where id = ${second.turnId} returning 1`,
    ).catch((e: Error) => e);
    expect(String((failure as { cause?: { constraint?: string } }).cause?.constraint)).to.equal('ux_mentor_turn_running');
  });

  it('folds the claim into the submit when a sandbox waits and a slot is free', async () => {
    const { db, person, conversationId, sandbox } = await scene(database.db);
    const asked = await ask(db, person, conversationId, { sandboxId: sandbox.id });
    expect(asked.result).to.deep.include({ kind: 'written', claimed: { leaseTtlMs: 60_000, deadlineMs: 300_000 } });
    expect(await turnRow(database.db, asked.turnId)).to.include({ status: 'RUNNING', state: 'LEASED', epoch: 1, attempt: 1, slots: 1 });
  });

  it('does not fold a claim past another conversation that waits', async () => {
    const { db, person, conversationId, sandbox } = await scene(database.db);
    const other = await makePerson(db);
    await ask(db, other, await makeMain(db, other));
    const asked = await ask(db, person, conversationId, { sandboxId: sandbox.id });
    expect(asked.result).to.include({ kind: 'written', claimed: null });
  });

  it('runs no more turns than there are slots, whoever claims', async () => {
    // rule: R4
    const { db, hostId } = await scene(database.db, 3);
    const offers: Offer[] = [];
    for (let n = 0; n < 8; n++) {
      const person = await makePerson(db);
      const conversationId = await makeMain(db, person);
      await ask(db, person, conversationId);
      offers.push({ conversationId, sandboxId: (await makeSandbox(db, person, conversationId, hostId)).id });
    }
    const pool = await openTestDatabase(database.url, 6);
    const grants = (await Promise.all(Array.from({ length: 6 }, () => claimFor(pool, offers, TIMES)))).flatMap((claimed) => claimed.grants);
    await pool.close();
    expect(grants).to.have.length(3);
    expect(new Set(grants.map((grant) => grant.turnId)).size).to.equal(3);
    expect(await claimFor(db, offers, TIMES)).to.deep.equal({ grants: [], refused: [] });
  });

  it('refuses at commit a run that is leased without a slot', async () => {
    // rule: R6
    const it = await claimed(database.db);
    const failure = await run(it.db, sql.unsafe`update turn_slot set run_id = null where run_id = ${it.grant.runId} returning 1`).catch(
      (e: Error) => e,
    );
    expect(failure).to.be.instanceOf(Error);
    expect((await turnRow(database.db, it.asked.turnId)).slots).to.equal(1);
  });

  it('refuses at commit a turn that disagrees with its run', async () => {
    // rule: R6
    const it = await claimed(database.db);
    const failure = await run(
      it.db,
      sql.unsafe`
      update mentor_turn set status = 'DONE', ended_at = clock_timestamp() where id = ${it.asked.turnId} returning 1`,
    ).catch((e: Error) => e);
    expect(failure).to.be.instanceOf(Error);
  });

  it('lets no row refer to another workspace', async () => {
    // rule: R11
    const it = await claimed(database.db);
    const stranger = await makePerson(it.db);
    const failure = await run(
      it.db,
      sql.unsafe`
      insert into mentor_entry (id, workspace_id, conversation_id, seq, kind, surface) values
      (${uuidv7()}, ${stranger.workspaceId}, ${it.conversationId}, 99, 'SYSTEM', 'app') returning 1`,
    ).catch((e: Error) => e);
    expect(failure).to.be.instanceOf(Error);
  });

  it('refuses every call of another run, epoch or sandbox', async () => {
    // rule: R5
    const it = await claimed(database.db);
    expect(await checkAttempt(it.db, it.key)).to.include({ stop: null });
    expect(await checkAttempt(it.db, { ...it.key, epoch: 2 })).to.equal(null);
    expect(await checkAttempt(it.db, { ...it.key, runId: uuidv7<'run'>() })).to.equal(null);
    expect(await checkAttempt(it.db, { ...it.key, sandboxId: uuidv7<'sandbox'>() })).to.equal(null);
  });

  it('stores all entries of an end in order, frees the slot and ends the run', async () => {
    // rule: R7
    const it = await claimed(database.db);
    const entries = [answer('first'), answer('second')];
    const end = await endDone(it, entries);
    expect(end).to.deep.include({ status: 'DONE', entryIds: entries.map((entry) => entry.id) });
    expect(await turnRow(database.db, it.asked.turnId)).to.include({ status: 'DONE', state: 'ENDED', slots: 0 });
    const rows = await run(it.db, sql.unsafe`select text, seq from mentor_entry where turn_id = ${it.asked.turnId} order by seq`);
    expect(rows.map((row) => row['text'])).to.deep.equal(['Why?', 'first', 'second']);
  });

  it('stores nothing for a repeated end', async () => {
    const it = await claimed(database.db);
    await endDone(it);
    expect(await endDone(it)).to.equal(null);
    const [count] = await run(it.db, sql.unsafe`select count(*) as n from mentor_entry where turn_id = ${it.asked.turnId}`);
    expect(count).to.deep.equal({ n: 2 });
  });

  it('stores no entry of an end when one of them is refused', async () => {
    // rule: R7
    const it = await claimed(database.db);
    const one = answer('one');
    const failure = await endDone(it, [one, { ...answer('two'), id: one.id }]).catch((error: Error) => error);
    expect(failure).to.be.instanceOf(Error);
    const [count] = await run(it.db, sql.unsafe`select count(*) as n from mentor_entry where turn_id = ${it.asked.turnId}`);
    expect(count).to.deep.equal({ n: 1 });
    expect((await turnRow(database.db, it.asked.turnId)).status).to.equal('RUNNING');
  });

  it('keeps a tool result with \\u0000 and a lone surrogate byte for byte', async () => {
    const it = await claimed(database.db);
    const payload = '{"type":"message","b":1,"a":"\\u0000 \\ud83d","message":{"role":"toolResult"}}';
    await endDone(it, [{ id: uuidv7<'entry'>(), kind: 'TOOL_RESULT', text: null, payload }, answer()]);
    const [row] = await run(
      it.db,
      sql.unsafe`select payload::text as payload from mentor_entry where turn_id = ${it.asked.turnId} and kind = 'TOOL_RESULT'`,
    );
    expect(row).to.deep.equal({ payload });
  });
});
