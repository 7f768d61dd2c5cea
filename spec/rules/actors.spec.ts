/**
 * One server's actors on a real database: questions, follow-ups, stops, ends. Time stands still unless a test moves it.
 * cases: A1, A6, A9, L3
 */
import { expect } from 'chai';
import { type Database, sql } from '../../db/pool.ts';
import type { TurnEndRequest } from '../../src/contract/agent.ts';
import type { Change } from '../../src/contract/changes.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { type ConversationId, uuidv7 } from '../../src/kernel/ids.ts';
import { Gate } from '../support/actor-rig.ts';
import { becomes, heldSlots, openPlayed, openScene, turnOf, turnsOf, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeMain, makePerson, type Person, run } from '../support/ledger.ts';
import { away } from '../support/steered-database.ts';
import { answerAtOnce, done, piAnswer, type StubTurn } from '../support/stub-sandboxes.ts';

describe('the actors of one server', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  /** A sandbox script that waits in the middle of its first turn. */
  function held() {
    const gate = new Gate();
    const script = async (turn: StubTurn) => {
      await gate.wait();
      await answerAtOnce(turn);
    };
    return { gate, script };
  }

  it('starts a question in the commit of its submit when its sandbox waits and a slot is free', async () => {
    const { db, server, person, parked, attempt } = await openPlayed(start, database.db);
    const pull = await parked();
    const turnId = await server.ask(person, 'Why?');
    expect(await turnOf(db, turnId)).to.include({ status: 'RUNNING', state: 'LEASED', attempt: 1 });
    expect(server.db.names()).to.include('ledger_submit').and.not.include('ledger_claim');
    const given = await pull.answer;
    expect(given).to.include({ kind: 'TURN', epoch: 1, leaseTtlMs: 60_000, renewEveryMs: 25_000, deadlineMs: 300_000 });
    expect(await server.runtime.endTurn(attempt(given), done('Because.'))).to.deep.equal({ kind: 'ended' });
    expect(await turnOf(db, turnId)).to.include({ status: 'DONE', state: 'ENDED' });
    expect(await heldSlots(db)).to.equal(0);
  });

  it('starts a sandbox for the first question of a person and answers it', async () => {
    const { db, server, person } = await openScene(start, database.db);
    const turnId = await server.ask(person, 'Why?');
    expect((await becomes(db, turnId, 'DONE')).answers).to.deep.equal(['Answer to Why?']);
    expect(server.host.starts).to.have.length(1);
  });

  it('asks in the main conversation that the person has now, when the one it remembers was erased or moved', async () => {
    const { db, server, person } = await openScene(start, database.db, { capacity: 0, sandboxesMax: 0 });
    const conversations = async () =>
      run(db, sql.unsafe`select conversation_id from mentor_turn where account_id = ${person.accountId} and status = 'QUEUED'`);
    await server.ask(person, 'one');
    const [first] = await conversations();
    await run(db, sql.unsafe`truncate mentor_turn, mentor_entry, agent_run, turn_slot, mentor_conversation cascade`);
    await server.ask(person, 'two');
    const [second] = await conversations();
    expect(second).to.not.deep.equal(first);
    const other = await makePerson(db, person.workspaceId);
    await run(
      db,
      sql.unsafe`update mentor_conversation set account_id = ${other.accountId}, version = version + 1 where account_id = ${person.accountId} returning id`,
    );
    await server.ask(person, 'three');
    expect((await conversations()).map((row) => row['conversation_id'])).to.have.length(2);
    expect(await run(db, sql.unsafe`select id from mentor_conversation`)).to.have.length(2);
  });

  it('queues a follow-up while a turn runs and starts it by itself after the end', async () => {
    const { gate, script } = held();
    const { db, server, person } = await openScene(start, database.db, { script });
    const first = await server.ask(person, 'one');
    await gate.entered;
    const second = await server.ask(person, 'two');
    expect(await turnOf(db, second)).to.include({ status: 'QUEUED', state: 'WAITING', attempt: 0 });
    gate.open();
    await becomes(db, second, 'DONE');
    expect((await turnsOf(db)).map((turn) => [turn.id, turn.answers])).to.deep.equal([
      [first, ['Answer to one']],
      [second, ['Answer to two']],
    ]);
  });

  it('lets queued questions run when the running one is stopped', async () => {
    const { gate, script } = held();
    const { db, server, person } = await openScene(start, database.db, { script });
    const first = await server.ask(person, 'one');
    await gate.entered;
    const [second, third] = [await server.ask(person, 'two'), await server.ask(person, 'three')];
    expect(await server.runtime.stopTurn(person, first)).to.deep.equal({ kind: 'stopped' });
    expect(await turnOf(db, first)).to.include({ status: 'STOPPED', state: 'LEASED' });
    gate.open();
    await becomes(db, third, 'DONE');
    expect((await turnsOf(db)).map((turn) => [turn.id, turn.status, turn.state])).to.deep.equal([
      [first, 'STOPPED', 'ENDED'],
      [second, 'DONE', 'ENDED'],
      [third, 'DONE', 'ENDED'],
    ]);
    expect(await heldSlots(db)).to.equal(0);
  });

  it('stores the cut-off answer of a stopped turn', async () => {
    const { db, server, person, parked, attempt } = await openPlayed(start, database.db);
    const pull = await parked();
    const turnId = await server.ask(person, 'Why?');
    const mine = attempt(await pull.answer);
    await server.runtime.stopTurn(person, turnId);
    expect(await server.runtime.publishPartial(mine, { offset: 0, text: 'x', stage: null })).to.deep.equal({
      kind: 'stopped',
      stop: 'developer',
    });
    expect(await server.runtime.readContext(mine)).to.deep.equal({ kind: 'stopped', stop: 'developer' });
    await server.runtime.endTurn(mine, { outcome: 'STOPPED', entries: [piAnswer('Because it')], lastPartial: null });
    expect(await turnOf(db, turnId)).to.deep.include({ status: 'STOPPED', state: 'ENDED', answers: ['Because it'] });
  });

  it('starts the question behind a queued one that is stopped', async () => {
    const { db, server, person } = await openScene(start, database.db, { capacity: 0 });
    const [first, second] = [await server.ask(person, 'one'), await server.ask(person, 'two')];
    await server.runtime.stopTurn(person, first);
    expect(await turnOf(db, first)).to.include({ status: 'STOPPED', state: 'ENDED', attempt: 0 });
    await run(db, sql.unsafe`insert into turn_slot (slot_no) values (1) returning 1`);
    server.actors.changed({ ...(server.changes[0] as Change), slots: true });
    await becomes(db, second, 'DONE');
  });

  it('answers a stop by what the turn is', async () => {
    const { db, server, person } = await openScene(start, database.db, { capacity: 0 });
    const turnId = await server.ask(person, 'one');
    const stops = await Promise.all([server.runtime.stopTurn(person, turnId), server.runtime.stopTurn(person, turnId)]);
    expect(stops).to.deep.equal([{ kind: 'stopped' }, { kind: 'stopped' }]);
    const stranger = await makePerson(db);
    expect(await server.runtime.stopTurn(stranger, turnId), 'of somebody else').to.deep.equal({ kind: 'no-turn' });
    expect(await server.runtime.stopTurn(person, uuidv7<'turn'>())).to.deep.equal({ kind: 'no-turn' });
    await run(db, sql.unsafe`insert into turn_slot (slot_no) values (1) returning 1`);
    const answered = await server.ask(person, 'two');
    await becomes(db, answered, 'DONE');
    expect(await server.runtime.stopTurn(person, answered)).to.deep.equal({ kind: 'already-ended' });
  });

  it('says once what changed, after it was committed', async () => {
    const { db, server, person } = await openScene(start, database.db);
    const turnId = await server.ask(person, 'Why?');
    await becomes(db, turnId, 'DONE');
    await until('the end is published', () => server.changes.length >= 3);
    const versions = server.changes.map((change) => change.version);
    expect(versions).to.deep.equal([1, 2, 3]);
    const [submitted, claimed, ended] = server.changes;
    expect(submitted).to.deep.include({ turnIds: [turnId], sealedRunIds: [] });
    expect(submitted?.entryIds).to.have.length(1);
    expect(claimed).to.deep.include({ turnIds: [turnId], slots: true });
    expect(ended?.sealedRunIds).to.have.length(1);
    expect(ended?.entryIds).to.have.length(1);
    expect(server.cleared).to.deep.equal([turnId]);
  });

  it('refuses one question too many, a reused requestId, a strange conversation and an erased person', async () => {
    // rule: R2, R10, R12
    const { db, server, person } = await openScene(start, database.db, { capacity: 0, maxFollowUps: 2 });
    const submit = (who: Person & { conversationId?: ConversationId }, text: string, requestId: string) =>
      server.runtime.submitQuestion({ conversationId: null, ...who, requestId, surface: 'app', text, page: null });
    const first = await submit(person, 'one', 'r1');
    const repeated = { ...first, written: null };
    expect(await submit(person, 'one', 'r1')).to.deep.equal(repeated);
    expect(await submit(person, 'two', 'r1')).to.deep.equal({ kind: 'request-id-reused' });
    await submit(person, 'two', 'r2');
    expect(await submit(person, 'three', 'r3')).to.deep.equal({ kind: 'full' });
    expect(await submit(person, 'one', 'r1'), 'a repeat is no new question').to.deep.equal(repeated);
    const stranger = await makePerson(db);
    expect(await submit({ ...stranger, conversationId: await makeMain(db, person) }, 'mine?', 'r1')).to.deep.equal({
      kind: 'no-conversation',
    });
    await run(db, sql.unsafe`update account set erasure_requested_at = clock_timestamp() where id = ${stranger.accountId} returning 1`);
    expect(await submit(stranger, 'me?', 'r1')).to.deep.equal({ kind: 'person-erased' });
  });

  it('learns that another server has written before it writes itself', async () => {
    const { db, server, person } = await openScene(start, database.db, { capacity: 0 });
    await server.ask(person, 'one');
    const conversationId = await makeMain(db, person);
    const theirs = await ask(db, person, conversationId, { text: 'two' });
    await server.ask(person, 'three');
    const [row] = await run(
      db,
      sql.unsafe`select array_agg(text order by seq) as texts from mentor_entry where conversation_id = ${conversationId}`,
    );
    expect(row).to.deep.equal({ texts: ['one', 'two', 'three'] });
    expect(await server.runtime.stopTurn(person, theirs.turnId), 'a turn that its cache has not seen').to.deep.equal({ kind: 'stopped' });
    expect(await turnOf(db, theirs.turnId)).to.include({ status: 'STOPPED' });
  });

  it('stops a turn that another server has written a moment ago', async () => {
    const { db, server, person } = await openScene(start, database.db, { capacity: 0 });
    await server.ask(person, 'one');
    const theirs = await ask(db, person, await makeMain(db, person), { text: 'two' });
    expect(await server.runtime.stopTurn(person, theirs.turnId)).to.deep.equal({ kind: 'stopped' });
    expect(await turnOf(db, theirs.turnId)).to.include({ status: 'STOPPED' });
  });

  describe('the end of a turn', () => {
    async function running(db: Database) {
      const it = await openPlayed(start, db);
      const pull = await it.parked();
      const turnId = await it.server.ask(it.person, 'Why?');
      return { ...it, turnId, mine: it.attempt(await pull.answer) };
    }

    it('is stored once, however often it is sent', async () => {
      const { db, server, turnId, mine } = await running(database.db);
      const end = done('Because.');
      const replies = await Promise.all([server.runtime.endTurn(mine, end), server.runtime.endTurn(mine, end)]);
      expect(replies).to.deep.equal([{ kind: 'ended' }, { kind: 'lost' }]);
      expect((await turnOf(db, turnId)).answers).to.deep.equal(['Because.']);
    });

    it('is refused with an entry id that is not its own to take, and may be sent again', async () => {
      const { db, server, turnId, mine } = await running(database.db);
      const [question] = await run(db, sql.unsafe`select id from mentor_entry`);
      const forged: TurnEndRequest = { outcome: 'DONE', entries: [{ ...piAnswer('x'), id: String(question?.['id']) }], lastPartial: null };
      expect(await server.runtime.endTurn(mine, forged)).to.include({ kind: 'refused' });
      expect(await turnOf(db, turnId)).to.include({ status: 'RUNNING' });
      const twice = piAnswer('x');
      expect(await server.runtime.endTurn(mine, { ...forged, entries: [twice, twice] })).to.include({ kind: 'refused' });
      expect(await server.runtime.endTurn(mine, { ...forged, entries: [{ ...twice, id: 'no-uuid' }] })).to.include({ kind: 'refused' });
      expect(await server.runtime.endTurn(mine, done('Because.'))).to.deep.equal({ kind: 'ended' });
    });

    it('is a failure without words, and when its driver says no more than that it is through', async () => {
      const silent = await running(database.db);
      await silent.server.runtime.endTurn(silent.mine, done());
      expect(await turnOf(silent.db, silent.turnId)).to.include({ status: 'FAILED', error: 'ERROR' });
      const pull = await silent.parked();
      const next = await silent.server.ask(silent.person, 'And?');
      const mine = silent.attempt(await pull.answer);
      expect(await silent.server.runtime.endRun(mine, { outcome: 'COMPLETED' })).to.deep.equal({ kind: 'ended' });
      expect(await turnOf(silent.db, next)).to.include({ status: 'FAILED', error: 'ERROR' });
    });

    it('keeps only the summary of a failed turn', async () => {
      // rule: R7
      const { db, server, turnId, mine } = await running(database.db);
      const summary = { type: 'compaction', id: uuidv7(), parentId: null, timestamp: 'x', summary: 's' };
      const end: TurnEndRequest = { outcome: 'FAILED', reason: 'STALLED', entries: [piAnswer('half'), summary], lastPartial: null };
      await server.runtime.endTurn(mine, end);
      const rows = await run(db, sql.unsafe`select kind from mentor_entry where turn_id = ${turnId} order by seq`);
      expect(rows.map((row) => row['kind'])).to.deep.equal(['QUESTION', 'SUMMARY']);
      expect(await turnOf(db, turnId)).to.include({ status: 'FAILED', error: 'STALLED' });
    });

    it('gives the attempt back when the run is handed on, and the turn starts again by itself', async () => {
      // rule: R9
      const { db, server, person } = await openScene(start, database.db);
      let first = true;
      server.host.script = async (turn) => {
        if (!first) return answerAtOnce(turn);
        first = false;
        await turn.handOn();
      };
      const turnId = await server.ask(person, 'Why?');
      expect(await becomes(db, turnId, 'DONE')).to.include({ attempt: 1, epoch: 2 });
    });

    it('is lost for an attempt that has lost its run, and so is every other call', async () => {
      // rule: R5
      const { db, server, turnId, mine } = await running(database.db);
      const others = [
        { ...mine, epoch: mine.epoch + 1 },
        { ...mine, runId: uuidv7<'run'>() },
        { ...mine, sandbox: { ...mine.sandbox, sandboxId: uuidv7<'sandbox'>() } },
      ];
      for (const other of others) {
        expect(await server.runtime.endTurn(other, done('forged'))).to.deep.equal({ kind: 'lost' });
        expect(await server.runtime.endRun(other, { outcome: 'HANDED_ON' })).to.deep.equal({ kind: 'lost' });
        expect(await server.runtime.publishPartial(other, { offset: 0, text: 'x', stage: null })).to.deep.equal({ kind: 'lost' });
        expect(await server.runtime.readContext(other)).to.deep.equal({ kind: 'lost' });
      }
      expect(await turnOf(db, turnId)).to.deep.include({ status: 'RUNNING', answers: [] });
      expect(server.partials).to.deep.equal([]);
    });

    it('is found again by a driver whose reply was lost: the repeat says that the run is gone', async () => {
      const { db, server, turnId, mine } = await running(database.db);
      server.db.loseReplies(({ name }) => name === 'ledger_end_turn');
      const lost = await server.runtime.endTurn(mine, done('Because.')).catch((error: unknown) => error);
      expect(lost).to.be.instanceOf(RuntimeFault).and.include({ code: 'DATABASE_UNAVAILABLE' });
      expect(await server.runtime.endTurn(mine, done('Because.'))).to.deep.equal({ kind: 'lost' });
      expect(await turnOf(db, turnId)).to.deep.include({ status: 'DONE', answers: ['Because.'] });
    });
  });

  it('answers a command that crashes with its fault and goes on from the rows', async () => {
    const { db, server, person } = await openScene(start, database.db);
    await becomes(db, await server.ask(person, 'one'), 'DONE');
    server.db.before = ({ name }) => {
      if (name === 'ledger_submit') throw new TypeError('a bug');
    };
    const crash = await server.ask(person, 'two').catch((error: unknown) => error);
    expect(crash).to.be.instanceOf(RuntimeFault).and.include({ code: 'INTERNAL' });
    server.db.before = () => undefined;
    const turnId = await server.ask(person, 'three');
    expect((await becomes(db, turnId, 'DONE')).answers).to.deep.equal(['Answer to three']);
  });

  it('returns the same turn for a question whose reply was lost', async () => {
    const { db, server, person } = await openScene(start, database.db);
    server.db.loseReplies(({ name }) => name === 'ledger_submit');
    const lost = await server.ask(person, 'Why?', { requestId: 'once' }).catch((error: unknown) => error);
    expect(lost).to.deep.include({ code: away().code });
    const turnId = await server.ask(person, 'Why?', { requestId: 'once' });
    await becomes(db, turnId, 'DONE');
    expect(await turnsOf(db)).to.have.length(1);
  });
});
