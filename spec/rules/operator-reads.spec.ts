/**
 * What an operator reads: from rows alone, with the reason why each turn waits and the rule by which it is stuck.
 */
import { expect } from 'chai';
import { openCall } from '../../db/gateway/open-call.ts';
import { endSandbox } from '../../db/ledger/sandboxes.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { describeHost } from '../../db/ops/hosts.ts';
import { pauseClaims } from '../../db/ops/pauses.ts';
import { sql } from '../../db/pool.ts';
import type { OperatorTurn, StuckRule } from '../../src/contract/operators.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { STUCK_AFTER_MS } from '../../src/ops/stuck.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, run } from '../support/ledger.ts';
import { useDesks } from '../support/operators.ts';
import { answer, claimed, endDone, scene } from '../support/scene.ts';

const WORDS = 'the words of a person';

describe('what an operator reads', () => {
  const database = useDatabase();
  const open = useDesks(database);
  beforeEach(() => emptyLedger(database.db));

  const sqlRun = (query: ReturnType<typeof sql.unsafe>) => run(database.db, query);
  /** A question of somebody else, without a sandbox. */
  async function question() {
    const person = await makePerson(database.db);
    const conversationId = await makeMain(database.db, person);
    return { person, conversationId, ...(await ask(database.db, person, conversationId, { text: WORDS })) };
  }
  async function one(id: string): Promise<OperatorTurn> {
    const desk = await open();
    return (await desk.get(`turns/${id}`)).body.turn;
  }
  const aged = (turnId: string, ms: number) =>
    sqlRun(sql.unsafe`update mentor_turn set created_at = created_at - ${ms}::int * interval '1 ms' where id = ${turnId} returning 1`);
  const why = async (id: string) => (await one(id)).waiting?.why;
  const rules = async (id: string) => (await one(id)).stuck.map(({ rule }) => rule);

  describe('says why a turn waits', () => {
    it('behind the turn before it in its conversation, also while that one runs', async () => {
      const it = await claimed(database.db);
      const second = await ask(database.db, it.person, it.conversationId);
      const third = await ask(database.db, it.person, it.conversationId);
      expect((await one(second.turnId)).waiting).to.deep.equal({ why: 'behind', behind: it.asked.turnId });
      expect((await one(third.turnId)).waiting).to.deep.equal({ why: 'behind', behind: second.turnId });
      expect((await one(it.asked.turnId)).waiting).to.equal(null);
    });

    it('no server, no sandbox, a sandbox that cannot start, no slot, nothing', async () => {
      const { db } = database;
      await reconcileSlots(db, 1);
      const { turnId, person, conversationId } = await question();
      expect(await why(turnId)).to.equal('no-server');
      const hostId = await makeHost(db);
      expect(await why(turnId)).to.equal('no-sandbox');
      const broken = await makeSandbox(db, person, conversationId, hostId);
      await endSandbox(db, broken.id, true);
      expect(await why(turnId)).to.equal('sandbox-cannot-start');
      await makeSandbox(db, person, conversationId, hostId);
      expect(await why(turnId)).to.equal('starting');
      await reconcileSlots(db, 0);
      expect(await why(turnId)).to.equal('no-slot');
    });

    it('paused, in its workspace or everywhere', async () => {
      const [here, there] = [await question(), await question()];
      await pauseClaims(database.db, { workspaceId: here.person.workspaceId, surface: null }, { operator: 'local', reason: 'a test' });
      expect(await why(here.turnId)).to.equal('paused');
      expect(await why(there.turnId)).to.equal('no-server');
      await pauseClaims(database.db, { workspaceId: null, surface: null }, { operator: 'local', reason: 'a test' });
      expect(await why(there.turnId)).to.equal('paused');
    });
  });

  describe('names the rule by which a turn is stuck, at its bound and not before', () => {
    /** The rule is silent just before its bound, and fires after it. */
    async function fires(rule: StuckRule, afterMs: number, at: { turnId: string; move: (ms: number) => Promise<unknown> }) {
      const { turnId, move } = at;
      await move(afterMs - 4_000);
      expect(await rules(turnId), `${rule} before its bound`).to.deep.equal([]);
      await move(4_000);
      expect(await rules(turnId), rule).to.deep.equal([rule]);
    }

    it('waiting: no server, no slot, no sandbox, nobody claims', async () => {
      const { db } = database;
      await reconcileSlots(db, 1);
      const noServer = await question();
      await fires('QUEUED_NO_SERVER', STUCK_AFTER_MS.unclaimed, { turnId: noServer.turnId, move: (ms) => aged(noServer.turnId, ms) });
      const hostId = await makeHost(db);
      const noSandbox = await question();
      await fires('QUEUED_NO_SANDBOX_LONG', STUCK_AFTER_MS.noSandbox, {
        turnId: noSandbox.turnId,
        move: (ms) => aged(noSandbox.turnId, ms),
      });
      const unclaimed = await question();
      await makeSandbox(db, unclaimed.person, unclaimed.conversationId, hostId);
      await fires('QUEUED_UNCLAIMED_LONG', STUCK_AFTER_MS.unclaimed, {
        turnId: unclaimed.turnId,
        move: (ms) => aged(unclaimed.turnId, ms),
      });
      await reconcileSlots(db, 0);
      const noSlot = await question();
      await fires('QUEUED_NO_SLOT_LONG', STUCK_AFTER_MS.noSlot, { turnId: noSlot.turnId, move: (ms) => aged(noSlot.turnId, ms) });
    });

    it('waiting: its sandbox failed to start twice', async () => {
      const { db } = database;
      const { turnId, person, conversationId } = await question();
      const hostId = await makeHost(db);
      for (const expected of [[], ['QUEUED_SANDBOX_FAILING']]) {
        const { id } = await makeSandbox(db, person, conversationId, hostId);
        await endSandbox(db, id, true);
        expect(await rules(turnId)).to.deep.equal(expected);
      }
    });

    it('running: its lease is over, its server is dead; stopping for too long', async () => {
      const { db } = database;
      const late = await claimed(db);
      await sqlRun(sql.unsafe`update agent_run set lease_until = clock_timestamp() where id = ${late.grant.runId} returning 1`);
      const lease = (ms: number) =>
        sqlRun(
          sql.unsafe`update agent_run set lease_until = lease_until - ${ms}::int * interval '1 ms' where id = ${late.grant.runId} returning 1`,
        );
      await fires('RUNNING_LEASE_EXPIRED', STUCK_AFTER_MS.lease, { turnId: late.asked.turnId, move: lease });

      const orphan = await claimed(db);
      await sqlRun(sql.unsafe`update sandbox_host set ended_at = clock_timestamp() where id = ${orphan.hostId} returning 1`);
      const host = (ms: number) =>
        sqlRun(
          sql.unsafe`update sandbox_host set ended_at = ended_at - ${ms}::int * interval '1 ms' where id = ${orphan.hostId} returning 1`,
        );
      await fires('RUNNING_HOST_DEAD', STUCK_AFTER_MS.host, { turnId: orphan.asked.turnId, move: host });

      const stopping = await claimed(db);
      const { turnId } = stopping.asked;
      await sqlRun(sql.unsafe`update mentor_turn set status = 'STOPPED', ended_at = clock_timestamp() where id = ${turnId} returning 1`);
      const stopped = (ms: number) =>
        sqlRun(sql.unsafe`update mentor_turn set ended_at = ended_at - ${ms}::int * interval '1 ms' where id = ${turnId} returning 1`);
      await fires('STOPPING_LONG', STUCK_AFTER_MS.stopping, { turnId: turnId, move: stopped });
    });

    it('model calls of a dead server that nobody closes, also when the turn has ended', async () => {
      const { db } = database;
      const it = await claimed(db);
      const deadId = await makeHost(db, 'dead');
      const { workspaceId } = it.person;
      const call = { callId: uuidv7<'call'>(), hostId: deadId, ...it.key, workspaceId, conversationId: it.conversationId, callsMax: 40 };
      expect(await openCall(db, { ...call, api: 'openai-completions' })).to.include({ kind: 'opened' });
      await sqlRun(sql.unsafe`update sandbox_host set ended_at = clock_timestamp() where id = ${deadId} returning 1`);
      const host = (ms: number) =>
        sqlRun(sql.unsafe`update sandbox_host set ended_at = ended_at - ${ms}::int * interval '1 ms' where id = ${deadId} returning 1`);
      await fires('CALLS_OPEN_OF_DEAD_HOST', STUCK_AFTER_MS.deadCall, { turnId: it.asked.turnId, move: host });
      await endDone(it);
      const desk = await open();
      const { turns } = (await desk.get('turns?state=stuck')).body;
      expect(turns.map(({ id, phase }: OperatorTurn) => [id, phase])).to.deep.equal([[it.asked.turnId, 'ended']]);
    });
  });

  it('lists what is open, newest first, in pages that miss nothing and repeat nothing', async () => {
    const running = await claimed(database.db);
    const waiting = [];
    for (let n = 0; n < 4; n++) waiting.push((await question()).turnId);
    const desk = await open();
    const seen: string[] = [];
    let before: string | null = null;
    do {
      const page: { turns: OperatorTurn[]; nextBefore: string | null } = (
        await desk.get(`turns?limit=2${before === null ? '' : `&before=${before}`}`)
      ).body;
      expect(page.turns.length).to.be.at.most(2);
      seen.push(...page.turns.map(({ id }) => id));
      before = page.nextBefore;
    } while (before !== null);
    expect(seen).to.deep.equal([running.asked.turnId, ...waiting].sort().reverse());
    const ids = async (state: string) => (await desk.get(`turns?state=${state}`)).body.turns.map(({ id }: OperatorTurn) => id);
    expect(await ids('running')).to.deep.equal([running.asked.turnId]);
    expect(await ids('queued')).to.deep.equal([...waiting].reverse());
    await endDone(running);
    expect(await ids('ended')).to.deep.equal([running.asked.turnId]);
  });

  it('says who has a running turn and how long its lease and deadline last', async () => {
    const it = await claimed(database.db);
    const turn = await one(it.asked.turnId);
    expect(turn).to.deep.include({
      status: 'RUNNING',
      phase: 'running',
      attempt: 1,
      epoch: 1,
      host: { id: it.hostId, name: 'spec', alive: true },
    });
    expect(turn.leaseMs).to.be.within(50_000, 60_000);
    expect(turn.deadlineMs).to.be.within(290_000, 300_000);
    await endDone(it);
    expect(await one(it.asked.turnId)).to.deep.include({ phase: 'ended', leaseMs: null, deadlineMs: null, host: null });
  });

  it('tells a turn from the ledger: asked, claimed, called, stored, ended; and none of its words', async () => {
    const it = await scene(database.db);
    const asked = await ask(database.db, it.person, it.conversationId, { text: WORDS });
    const grant = await claimOne(database.db, it.conversationId, it.sandbox.id);
    const key = { runId: grant?.runId as never, epoch: 1, sandboxId: it.sandbox.id };
    const call = {
      ...key,
      callId: uuidv7<'call'>(),
      hostId: it.hostId,
      workspaceId: it.person.workspaceId,
      conversationId: it.conversationId,
    };
    await openCall(database.db, { ...call, api: 'openai-completions', callsMax: 40 });
    await endDone({ ...it, asked, grant: grant as never, key }, [answer('the words of a model')]);
    const desk = await open();
    const { body, text } = await desk.get(`turns/${asked.turnId}`);
    const whats = body.timeline.map(({ what }: { what: string }) => what);
    expect(whats.filter((what: string) => what !== 'sandbox')).to.deep.equal(['asked', 'entry', 'claimed', 'call', 'entry', 'ended']);
    expect(body.timeline.find(({ what }: { what: string }) => what === 'ended').detail).to.equal('DONE');
    expect(text).to.not.include('words');
    expect((await desk.get(`turns/${uuidv7()}`)).body.code).to.equal('TURN_NOT_FOUND');
    expect((await desk.get('turns/it')).body.code).to.equal('TURN_NOT_FOUND');
  });

  it('shows the installation: slots, turns, failures, calls, sandboxes, servers, pauses, what is stuck', async () => {
    const { db } = database;
    const it = await claimed(db, 3);
    await describeHost(db, it.hostId, 'heph 9.9.9');
    const { turnId, person } = await question();
    await aged(turnId, 120_000);
    await pauseClaims(db, { workspaceId: person.workspaceId, surface: null }, { operator: 'local', reason: 'they asked for it' });
    const failed = await question();
    await sqlRun(sql.unsafe`with t as (update mentor_turn set status = 'FAILED', error_code = 'BUDGET', error_text = 'x', ended_at = clock_timestamp()
      where id = ${failed.turnId}) update agent_run set state = 'ENDED', ended_at = clock_timestamp() where turn_id = ${failed.turnId} returning 1`);
    const desk = await open({ hostId: it.hostId });
    const { body } = await desk.get('overview');
    expect(body.slots).to.deep.equal({ limit: 3, held: 1, free: 2, retiring: 0 });
    expect(body.turns).to.include({ running: 1, stopping: 0, queued: 1 });
    expect(body.turns.oldestWaitingMs).to.be.within(120_000, 130_000);
    expect(body.failures).to.deep.equal([{ name: 'BUDGET', count: 1 }]);
    expect(body.sandboxes).to.deep.equal([{ name: 'STARTING', count: 1 }]);
    expect(body.servers).to.have.length(1);
    expect(body.servers[0]).to.include({ id: it.hostId, build: 'heph 9.9.9', state: 'up', sandboxes: 1, running: 1, self: true });
    expect(body.pauses).to.have.length(1);
    expect(body.pauses[0]).to.include({ reason: 'they asked for it', operator: 'local' });
    expect(body.outbox).to.deep.equal({ pending: 0, uncertain: 0, oldestMs: null });
    expect(body.stuck).to.deep.equal({ byRule: [], lookedAt: 2, complete: true });
  });

  it('finds turns by workspace, surface, conversation, reason and rule, newest or oldest first, page by page', async () => {
    await reconcileSlots(database.db, 4);
    const asked = [await question(), await question(), await question()];
    const ids = asked.map(({ turnId }) => turnId);
    const desk = await open();
    const found = async (query: string) => (await desk.get(`turns?${query}`)).body.turns.map(({ id }: { id: string }) => id);
    expect(await found('sort=oldest')).to.deep.equal(ids);
    expect(await found('sort=newest')).to.deep.equal([...ids].reverse());
    const first = (await desk.get('turns?sort=oldest&limit=2')).body;
    expect(await found(`sort=oldest&limit=2&before=${first.nextBefore}`)).to.deep.equal([ids[2]]);
    const [slug] = await sqlRun(sql.unsafe`select slug from workspace where id = ${asked[1]?.person.workspaceId ?? ''}::uuid`);
    expect(await found(`workspace=${slug?.['slug']}`)).to.deep.equal([ids[1]]);
    expect(await found(`conversation=${asked[0]?.conversationId}`)).to.deep.equal([ids[0]]);
    expect(await found('surface=slack')).to.deep.equal([]);
    expect(await found('surface=app&why=no-server')).to.deep.equal(ids);
    expect(await found('why=no-slot')).to.deep.equal([]);
    await aged(String(ids[2]), STUCK_AFTER_MS.unclaimed);
    expect(await found('state=stuck')).to.deep.equal([ids[2]]);
    expect(await found('rule=QUEUED_NO_SERVER')).to.deep.equal([ids[2]]);
    expect(await found('state=stuck&rule=STOPPING_LONG')).to.deep.equal([]);
    for (const query of ['why=odd', 'rule=odd', 'surface=fax', 'conversation=it', 'workspace=Odd!', 'sort=odd'])
      expect((await desk.get(`turns?${query}`)).status, query).to.equal(400);
  });

  it('refuses a page that is no page, and a caller from elsewhere', async () => {
    const desk = await open();
    for (const query of ['limit=0', 'limit=201', 'state=odd', 'before=it', 'other=1']) {
      expect((await desk.get(`turns?${query}`)).status, query).to.equal(400);
    }
    expect((await desk.get('turns?limit=200')).status).to.equal(200);
    for (const path of ['overview', 'turns', `turns/${uuidv7()}`, 'actions', 'actors/conversation/x']) {
      const { status } = await fetch(`${desk.url}/admin/api/${path}`, { headers: { 'sec-fetch-site': 'cross-site' } });
      expect(status, path).to.equal(403);
    }
  });
});
