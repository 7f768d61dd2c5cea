/**
 * The ledger's rules against a real PostgreSQL: what no sequence of statements can break.
 */
import { expect } from 'chai';
import { claimTurns } from '../../db/ledger/claim.ts';
import { findOrCreateMain, loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn } from '../../db/ledger/end-turn.ts';
import { checkAttempt, noteCall, renewLeases } from '../../db/ledger/fence.ts';
import { handOnRun } from '../../db/ledger/hand-on.ts';
import { takeBackLeases } from '../../db/ledger/reap.ts';
import { endIdleSandbox, endSandbox, uncalledClaim } from '../../db/ledger/sandboxes.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import { sql } from '../../db/pool.ts';
import { type ConversationId, type RunId, type SandboxId, type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, run, TIMES } from '../support/ledger.ts';

const TEXTS = { failed: { code: 'ERROR', text: 'failed' }, deadline: { code: 'DEADLINE', text: 'late' } };

describe('the ledger', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  async function scene(capacity = 4) {
    const { db } = database;
    await reconcileSlots(db, capacity);
    const person = await makePerson(db);
    const conversationId = await makeMain(db, person);
    const hostId = await makeHost(db);
    const sandbox = await makeSandbox(db, person, conversationId, hostId);
    return { db, person, conversationId, hostId, sandbox };
  }

  async function turnRow(turnId: TurnId) {
    const [row] = await run(database.db, sql.unsafe`
      select t.status, t.attempt, t.error_code, r.state, r.epoch, (select count(*)::int from turn_slot s where s.run_id = r.id) as slots
      from mentor_turn t join agent_run r on r.turn_id = t.id where t.id = ${turnId}`);
    return row as { status: string; attempt: number; error_code: string | null; state: string; epoch: number; slots: number };
  }

  async function claimed(capacity = 4) {
    const it = await scene(capacity);
    const asked = await ask(it.db, it.person, it.conversationId);
    const grant = await claimOne(it.db, it.conversationId, it.sandbox.id);
    if (!grant) throw new Error('not granted');
    const key = { runId: grant.runId, epoch: grant.epoch, sandboxId: it.sandbox.id };
    return { ...it, asked, grant, key };
  }

  const answer = (text = 'Because.') => ({
    id: uuidv7<'entry'>(),
    kind: 'ANSWER' as const,
    text,
    payload: JSON.stringify({ type: 'message', message: { role: 'assistant', content: [{ type: 'text', text }] } }),
  });

  async function endDone(it: Awaited<ReturnType<typeof claimed>>, entries = [answer()]) {
    const rows = await loadConversation(it.db, it.conversationId);
    return endTurn(it.db, { ...it.key, conversationId: it.conversationId, version: rows?.version ?? -1, status: 'DONE', error: null, entries });
  }

  it('gives two first writes of an account one main conversation', async () => {
    const { db } = database;
    const person = await makePerson(db);
    const ids = await Promise.all(Array.from({ length: 8 }, () => findOrCreateMain(db, person.workspaceId, person.accountId)));
    expect(new Set(ids).size).to.equal(1);
  });

  it('refuses to delete an account that owns a conversation', async () => {
    const { db, person } = await scene();
    await run(db, sql.unsafe`delete from workspace_member where account_id = ${person.accountId} returning 1`);
    const failure = await run(db, sql.unsafe`delete from account where id = ${person.accountId} returning 1`).catch((error: Error) => error);
    expect(failure).to.be.instanceOf(Error);
  });

  it('writes the question and a queued turn together, in the order of seq', async () => {
    // rule: R3
    const { db, person, conversationId } = await scene(0);
    const asked = [await ask(db, person, conversationId, { text: 'one' }), await ask(db, person, conversationId, { text: 'two' })];
    const rows = await run(db, sql.unsafe`
      select e.text, e.seq, t.status from mentor_entry e join mentor_turn t on t.question_entry_id = e.id and t.question_seq = e.seq
      where e.conversation_id = ${conversationId} order by e.seq`);
    expect(rows).to.deep.equal([
      { text: 'one', seq: 1, status: 'QUEUED' },
      { text: 'two', seq: 2, status: 'QUEUED' },
    ]);
    expect(asked.map((one) => one.result.kind)).to.deep.equal(['written', 'written']);
  });

  it('returns the same rows for a repeated requestId and refuses it for other words', async () => {
    // rule: R2
    const { db, person, conversationId } = await scene();
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
    const { db, person, conversationId } = await scene(0);
    for (let n = 0; n < 10; n++) expect((await ask(db, person, conversationId)).result.kind).to.equal('written');
    expect((await ask(db, person, conversationId)).result.kind).to.equal('full');
  });

  it('still repeats an accepted question while the queue is full', async () => {
    const { db, person, conversationId } = await scene(0);
    await ask(db, person, conversationId, { requestId: 'first', maxFollowUps: 1 });
    expect((await ask(db, person, conversationId, { requestId: 'first', maxFollowUps: 1 })).result.kind).to.equal('repeat');
  });

  it('tells a writer with an old version to look again, and writes nothing', async () => {
    const { db, person, conversationId } = await scene(0);
    const before = await loadConversation(db, conversationId);
    await ask(db, person, conversationId);
    const stop = await stopTurn(db, { conversationId, version: before?.version ?? -1, turnId: uuidv7<'turn'>(), graceMs: 1 });
    expect(stop).to.equal(null);
  });

  it('accepts no question after an erasure was requested', async () => {
    // rule: R12
    const { db, person, conversationId } = await scene();
    await run(db, sql.unsafe`update account set erasure_requested_at = clock_timestamp() where id = ${person.accountId} returning 1`);
    expect((await ask(db, person, conversationId)).result.kind).to.equal('erased');
  });

  it('claims the first question of a conversation and never two at once', async () => {
    // rule: R1
    const { db, person, conversationId, sandbox } = await scene();
    const [first, second] = [await ask(db, person, conversationId), await ask(db, person, conversationId)];
    const grants = await Promise.all(Array.from({ length: 6 }, () => claimOne(db, conversationId, sandbox.id)));
    const won = grants.filter((grant) => grant !== undefined);
    expect(won.map((grant) => grant.turnId)).to.deep.equal([first.turnId]);
    expect(await turnRow(first.turnId)).to.deep.equal({ status: 'RUNNING', attempt: 1, error_code: null, state: 'LEASED', epoch: 1, slots: 1 });
    expect((await turnRow(second.turnId)).status).to.equal('QUEUED');
  });

  it('refuses a second running turn of a conversation by its own index', async () => {
    // rule: R1
    const it = await claimed();
    const second = await ask(it.db, it.person, it.conversationId);
    const failure = await run(it.db, sql.unsafe`
      update mentor_turn set status = 'RUNNING', attempt = 1, started_at = clock_timestamp() where id = ${second.turnId} returning 1`).catch((e: Error) => e);
    expect(String((failure as { cause?: { constraint?: string } }).cause?.constraint)).to.equal('ux_mentor_turn_running');
  });

  it('folds the claim into the submit when a sandbox waits and a slot is free', async () => {
    const { db, person, conversationId, sandbox } = await scene();
    const asked = await ask(db, person, conversationId, { sandboxId: sandbox.id });
    expect(asked.result).to.include({ kind: 'written', claimed: true });
    expect(await turnRow(asked.turnId)).to.include({ status: 'RUNNING', state: 'LEASED', epoch: 1, attempt: 1, slots: 1 });
  });

  it('does not fold a claim past another conversation that waits', async () => {
    const { db, person, conversationId, sandbox } = await scene();
    const other = await makePerson(db);
    await ask(db, other, await makeMain(db, other));
    const asked = await ask(db, person, conversationId, { sandboxId: sandbox.id });
    expect(asked.result).to.include({ kind: 'written', claimed: false });
  });

  it('runs no more turns than there are slots, whoever claims', async () => {
    // rule: R4
    const { db, hostId } = await scene(3);
    const offers = [];
    for (let n = 0; n < 8; n++) {
      const person = await makePerson(db);
      const conversationId = await makeMain(db, person);
      await ask(db, person, conversationId);
      offers.push({ conversationId, sandboxId: (await makeSandbox(db, person, conversationId, hostId)).id });
    }
    const pool = await openTestDatabase(database.url, 6);
    const grants = (await Promise.all(Array.from({ length: 6 }, () => claimTurns(pool, offers, TIMES)))).flat();
    await pool.close();
    expect(grants).to.have.length(3);
    expect(new Set(grants.map((grant) => grant.turnId)).size).to.equal(3);
    expect(await claimTurns(db, offers, TIMES)).to.deep.equal([]);
  });

  it('refuses at commit a run that is leased without a slot', async () => {
    // rule: R6
    const it = await claimed();
    const failure = await run(it.db, sql.unsafe`update turn_slot set run_id = null where run_id = ${it.grant.runId} returning 1`).catch((e: Error) => e);
    expect(failure).to.be.instanceOf(Error);
    expect((await turnRow(it.asked.turnId)).slots).to.equal(1);
  });

  it('refuses at commit a turn that disagrees with its run', async () => {
    // rule: R6
    const it = await claimed();
    const failure = await run(it.db, sql.unsafe`
      update mentor_turn set status = 'DONE', ended_at = clock_timestamp() where id = ${it.asked.turnId} returning 1`).catch((e: Error) => e);
    expect(failure).to.be.instanceOf(Error);
  });

  it('lets no row refer to another workspace', async () => {
    // rule: R11
    const it = await claimed();
    const stranger = await makePerson(it.db);
    const failure = await run(it.db, sql.unsafe`
      insert into mentor_entry (id, workspace_id, conversation_id, seq, kind, surface) values
      (${uuidv7()}, ${stranger.workspaceId}, ${it.conversationId}, 99, 'SYSTEM', 'app') returning 1`).catch((e: Error) => e);
    expect(failure).to.be.instanceOf(Error);
  });

  it('refuses every call of another run, epoch or sandbox', async () => {
    // rule: R5
    const it = await claimed();
    expect(await checkAttempt(it.db, it.key)).to.include({ stop: null });
    expect(await checkAttempt(it.db, { ...it.key, epoch: 2 })).to.equal(null);
    expect(await checkAttempt(it.db, { ...it.key, runId: uuidv7<'run'>() })).to.equal(null);
    expect(await checkAttempt(it.db, { ...it.key, sandboxId: uuidv7<'sandbox'>() })).to.equal(null);
  });

  it('stores all entries of an end in order, frees the slot and ends the run', async () => {
    // rule: R7
    const it = await claimed();
    const entries = [answer('first'), answer('second')];
    const end = await endDone(it, entries);
    expect(end).to.deep.include({ status: 'DONE', entryIds: entries.map((entry) => entry.id) });
    expect(await turnRow(it.asked.turnId)).to.include({ status: 'DONE', state: 'ENDED', slots: 0 });
    const rows = await run(it.db, sql.unsafe`select text, seq from mentor_entry where turn_id = ${it.asked.turnId} order by seq`);
    expect(rows.map((row) => row['text'])).to.deep.equal(['Why?', 'first', 'second']);
  });

  it('stores nothing for a repeated end', async () => {
    const it = await claimed();
    await endDone(it);
    expect(await endDone(it)).to.equal(null);
    const [count] = await run(it.db, sql.unsafe`select count(*) as n from mentor_entry where turn_id = ${it.asked.turnId}`);
    expect(count).to.deep.equal({ n: 2 });
  });

  it('stores no entry of an end when one of them is refused', async () => {
    // rule: R7
    const it = await claimed();
    const one = answer('one');
    const failure = await endDone(it, [one, { ...answer('two'), id: one.id }]).catch((error: Error) => error);
    expect(failure).to.be.instanceOf(Error);
    const [count] = await run(it.db, sql.unsafe`select count(*) as n from mentor_entry where turn_id = ${it.asked.turnId}`);
    expect(count).to.deep.equal({ n: 1 });
    expect((await turnRow(it.asked.turnId)).status).to.equal('RUNNING');
  });

  it('keeps a tool result with \\u0000 and a lone surrogate byte for byte', async () => {
    const it = await claimed();
    const payload = '{"type":"message","b":1,"a":"\\u0000 \\ud83d","message":{"role":"toolResult"}}';
    await endDone(it, [{ id: uuidv7<'entry'>(), kind: 'TOOL_RESULT' as never, text: null as never, payload }, answer()]);
    const [row] = await run(it.db, sql.unsafe`select payload::text as payload from mentor_entry where turn_id = ${it.asked.turnId} and kind = 'TOOL_RESULT'`);
    expect(row).to.deep.equal({ payload });
  });

  it('stops a queued turn for good', async () => {
    const { db, person, conversationId, sandbox } = await scene();
    const asked = await ask(db, person, conversationId);
    const rows = await loadConversation(db, conversationId);
    expect(await stopTurn(db, { conversationId, version: rows?.version ?? -1, turnId: asked.turnId, graceMs: 30_000 })).to.include({ leased: false });
    expect(await turnRow(asked.turnId)).to.include({ status: 'STOPPED', state: 'ENDED' });
    expect(await claimOne(db, conversationId, sandbox.id)).to.equal(undefined);
  });

  it('stops a running turn at once but keeps its run leased until its loop ends it', async () => {
    const it = await claimed();
    await stopTurn(it.db, { conversationId: it.conversationId, version: it.grant.version, turnId: it.asked.turnId, graceMs: 30_000 });
    expect(await turnRow(it.asked.turnId)).to.include({ status: 'STOPPED', state: 'LEASED', slots: 1 });
    expect(await checkAttempt(it.db, it.key)).to.include({ stop: 'developer' });
    const renewed = await renewLeases(it.db, [it.key], 60_000);
    expect(renewed.get(it.grant.runId)?.leaseTtlMs).to.be.within(25_000, 30_000);
    await endDone(it, [answer('cut off')]);
    expect(await turnRow(it.asked.turnId)).to.include({ status: 'STOPPED', state: 'ENDED', slots: 0 });
  });

  it('does not start the next question before the stopped loop has ended', async () => {
    const it = await claimed();
    await ask(it.db, it.person, it.conversationId);
    const rows = await loadConversation(it.db, it.conversationId);
    await stopTurn(it.db, { conversationId: it.conversationId, version: rows?.version ?? -1, turnId: it.asked.turnId, graceMs: 30_000 });
    expect(await claimOne(it.db, it.conversationId, it.sandbox.id)).to.equal(undefined);
    await endDone(it);
    expect(await claimOne(it.db, it.conversationId, it.sandbox.id)).to.include({ epoch: 1 });
  });

  async function expire(runId: RunId) {
    await run(database.db, sql.unsafe`update agent_run set lease_until = clock_timestamp() - interval '1 ms' where id = ${runId} returning 1`);
  }

  it('requeues the first lost lease, fails the second, and counts each attempt at its claim', async () => {
    // rule: R9
    const it = await claimed();
    await expire(it.grant.runId);
    expect(await checkAttempt(it.db, it.key), 'leased is a state, not a time').to.not.equal(null);
    expect((await takeBackLeases(it.db, 10, TEXTS)).map((turn) => turn.status)).to.deep.equal(['QUEUED']);
    expect(await checkAttempt(it.db, it.key)).to.equal(null);
    const again = await claimOne(it.db, it.conversationId, it.sandbox.id);
    expect(again).to.include({ turnId: it.asked.turnId, epoch: 2 });
    await expire(it.grant.runId);
    expect((await takeBackLeases(it.db, 10, TEXTS)).map((turn) => turn.status)).to.deep.equal(['FAILED']);
    expect(await turnRow(it.asked.turnId)).to.deep.equal({ status: 'FAILED', attempt: 2, error_code: 'ERROR', state: 'ENDED', epoch: 2, slots: 0 });
  });

  it('leaves a lease alone that was renewed while the reaper looked', async () => {
    // rule: R8
    const it = await claimed();
    await renewLeases(it.db, [it.key], 60_000);
    expect(await takeBackLeases(it.db, 10, TEXTS)).to.deep.equal([]);
  });

  it('keeps a stopped turn stopped when its loop never ends it', async () => {
    const it = await claimed();
    await stopTurn(it.db, { conversationId: it.conversationId, version: it.grant.version, turnId: it.asked.turnId, graceMs: 30_000 });
    await expire(it.grant.runId);
    expect((await takeBackLeases(it.db, 10, TEXTS)).map((turn) => turn.status)).to.deep.equal(['STOPPED']);
    expect(await turnRow(it.asked.turnId)).to.include({ status: 'STOPPED', state: 'ENDED', slots: 0 });
  });

  it('fails a turn past its deadline with the text of the deadline', async () => {
    const it = await claimed();
    await run(it.db, sql.unsafe`
      update agent_run set deadline_at = clock_timestamp() - interval '1 s', lease_until = clock_timestamp() - interval '1 ms' where id = ${it.grant.runId} returning 1`);
    expect(await checkAttempt(it.db, it.key)).to.include({ stop: 'deadline' });
    await takeBackLeases(it.db, 10, TEXTS);
    expect(await turnRow(it.asked.turnId)).to.include({ status: 'FAILED', error_code: 'DEADLINE' });
  });

  it('gives the attempt of a handed-on run back', async () => {
    // rule: R9
    const it = await claimed();
    const params = { ...it.key, conversationId: it.conversationId, version: it.grant.version };
    expect(await handOnRun(it.db, params)).to.include({ status: 'QUEUED' });
    expect(await turnRow(it.asked.turnId)).to.include({ status: 'QUEUED', attempt: 0, state: 'WAITING', slots: 0 });
  });

  it('takes back at once what an ended sandbox held', async () => {
    const it = await claimed();
    expect(await endSandbox(it.db, it.sandbox.id)).to.deep.equal({ leased: true });
    expect((await takeBackLeases(it.db, 10, TEXTS)).map((turn) => turn.status)).to.deep.equal(['QUEUED']);
  });

  it('does not end a sandbox that has just been given a run', async () => {
    const it = await claimed();
    expect(await endIdleSandbox(it.db, it.sandbox.id)).to.equal(false);
    await endDone(it);
    expect(await endIdleSandbox(it.db, it.sandbox.id)).to.equal(true);
    await ask(it.db, it.person, it.conversationId);
    expect(await claimOne(it.db, it.conversationId, it.sandbox.id), 'an ended sandbox claims nothing').to.equal(undefined);
  });

  it('gives a claim again to the same sandbox until it has made a call', async () => {
    const it = await claimed();
    expect(await uncalledClaim(it.db, it.sandbox.id)).to.include({ runId: it.grant.runId, epoch: 1 });
    await noteCall(it.db, it.key);
    expect(await uncalledClaim(it.db, it.sandbox.id)).to.equal(null);
  });

  it('retires slots that are held when the capacity shrinks', async () => {
    const it = await claimed(4);
    expect(await reconcileSlots(it.db, 0)).to.deep.equal({ total: 0, held: 1, retiring: 1 });
    await endDone(it);
    expect(await reconcileSlots(it.db, 0)).to.deep.equal({ total: 0, held: 0, retiring: 0 });
  });

  it('grants freed slots to workspaces that hold fewer first, then to the oldest question', async () => {
    const { db, hostId } = await scene(0);
    const busy = await makePerson(db);
    const quiet = await makePerson(db);
    const offers: { conversationId: ConversationId; sandboxId: SandboxId }[] = [];
    for (const person of [busy, await makePerson(db, busy.workspaceId), quiet]) {
      const conversationId = await makeMain(db, person);
      await ask(db, person, conversationId);
      offers.push({ conversationId, sandboxId: (await makeSandbox(db, person, conversationId, hostId)).id });
    }
    await reconcileSlots(db, 2);
    const grants = await claimTurns(db, offers, TIMES);
    expect(grants.map((grant) => grant.workspaceId)).to.have.members([busy.workspaceId, quiet.workspaceId]);
    expect(grants.map((grant) => grant.conversationId)).to.include(offers[0]?.conversationId);
  });
});
