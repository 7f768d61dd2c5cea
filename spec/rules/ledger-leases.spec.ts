/**
 * The ledger's rules against a real PostgreSQL: stops, leases, take-backs, sandboxes and slots.
 */
import { expect } from 'chai';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { checkAttempt, noteCall, renewLeases } from '../../db/ledger/fence.ts';
import { handOnRun } from '../../db/ledger/hand-on.ts';
import { takeBackLeases } from '../../db/ledger/reap.ts';
import { endIdleSandbox, endSandbox, uncalledClaim } from '../../db/ledger/sandboxes.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import { sql } from '../../db/pool.ts';
import type { ConversationId, RunId, SandboxId } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimFor, claimOne, emptyLedger, makeMain, makePerson, makeSandbox, run, TIMES } from '../support/ledger.ts';

const TEXTS = { failed: { code: 'ERROR', text: 'failed' }, deadline: { code: 'DEADLINE', text: 'late' } };

import { answer, claimed, endDone, scene, turnRow } from '../support/scene.ts';

describe('leases and slots of the ledger', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  it('stops a queued turn for good', async () => {
    const { db, person, conversationId, sandbox } = await scene(database.db);
    const asked = await ask(db, person, conversationId);
    const rows = await loadConversation(db, conversationId);
    expect(await stopTurn(db, { conversationId, version: rows?.version ?? -1, turnId: asked.turnId, graceMs: 30_000 })).to.include({
      leased: false,
    });
    expect(await turnRow(database.db, asked.turnId)).to.include({ status: 'STOPPED', state: 'ENDED' });
    expect(await claimOne(db, conversationId, sandbox.id)).to.equal(undefined);
  });

  it('stops a running turn at once but keeps its run leased until its loop ends it', async () => {
    const it = await claimed(database.db);
    await stopTurn(it.db, { conversationId: it.conversationId, version: it.grant.version, turnId: it.asked.turnId, graceMs: 30_000 });
    expect(await turnRow(database.db, it.asked.turnId)).to.include({ status: 'STOPPED', state: 'LEASED', slots: 1 });
    expect(await checkAttempt(it.db, it.key)).to.include({ stop: 'developer' });
    const renewed = await renewLeases(it.db, [it.key], 60_000);
    expect(renewed.get(it.grant.runId)?.leaseTtlMs).to.be.within(25_000, 30_000);
    await endDone(it, [answer('cut off')]);
    expect(await turnRow(database.db, it.asked.turnId)).to.include({ status: 'STOPPED', state: 'ENDED', slots: 0 });
  });

  it('does not start the next question before the stopped loop has ended', async () => {
    const it = await claimed(database.db);
    await ask(it.db, it.person, it.conversationId);
    const rows = await loadConversation(it.db, it.conversationId);
    await stopTurn(it.db, { conversationId: it.conversationId, version: rows?.version ?? -1, turnId: it.asked.turnId, graceMs: 30_000 });
    expect(await claimOne(it.db, it.conversationId, it.sandbox.id)).to.equal(undefined);
    await endDone(it);
    expect(await claimOne(it.db, it.conversationId, it.sandbox.id)).to.include({ epoch: 1 });
  });

  async function expire(runId: RunId) {
    await run(
      database.db,
      sql.unsafe`update agent_run set lease_until = clock_timestamp() - interval '1 ms' where id = ${runId} returning 1`,
    );
  }

  it('ends a silent sandbox with the lease that it lost, also when that runs out between two looks, so that the turn gets another one', async () => {
    const it = await claimed(database.db);
    await expire(it.grant.runId);
    await takeBackLeases(it.db, 10, { ...TEXTS, endsSandbox: true });
    const [box] = await run(it.db, sql.unsafe`select state, ended_at is not null as over from sandbox where id = ${it.sandbox.id}`);
    expect(box).to.deep.equal({ state: 'ENDED', over: true });
    expect(await turnRow(it.db, it.asked.turnId)).to.include({ status: 'QUEUED', attempt: 1 });
  });

  it('requeues the first lost lease, fails the second, and counts each attempt at its claim', async () => {
    // rule: R9
    const it = await claimed(database.db);
    await expire(it.grant.runId);
    expect(await checkAttempt(it.db, it.key), 'leased is a state, not a time').to.not.equal(null);
    expect((await takeBackLeases(it.db, 10, TEXTS)).map((turn) => turn.status)).to.deep.equal(['QUEUED']);
    expect(await checkAttempt(it.db, it.key)).to.equal(null);
    const again = await claimOne(it.db, it.conversationId, it.sandbox.id);
    expect(again).to.include({ turnId: it.asked.turnId, epoch: 2 });
    await expire(it.grant.runId);
    expect((await takeBackLeases(it.db, 10, TEXTS)).map((turn) => turn.status)).to.deep.equal(['FAILED']);
    expect(await turnRow(database.db, it.asked.turnId)).to.deep.equal({
      status: 'FAILED',
      attempt: 2,
      error_code: 'ERROR',
      state: 'ENDED',
      epoch: 2,
      slots: 0,
    });
  });

  it('leaves a lease alone that was renewed while the reaper looked', async () => {
    // rule: R8
    const it = await claimed(database.db);
    await renewLeases(it.db, [it.key], 60_000);
    expect(await takeBackLeases(it.db, 10, TEXTS)).to.deep.equal([]);
  });

  it('keeps a stopped turn stopped when its loop never ends it', async () => {
    const it = await claimed(database.db);
    await stopTurn(it.db, { conversationId: it.conversationId, version: it.grant.version, turnId: it.asked.turnId, graceMs: 30_000 });
    await expire(it.grant.runId);
    expect((await takeBackLeases(it.db, 10, TEXTS)).map((turn) => turn.status)).to.deep.equal(['STOPPED']);
    expect(await turnRow(database.db, it.asked.turnId)).to.include({ status: 'STOPPED', state: 'ENDED', slots: 0 });
  });

  it('fails a turn past its deadline with the text of the deadline', async () => {
    const it = await claimed(database.db);
    await run(
      it.db,
      sql.unsafe`
      update agent_run set deadline_at = clock_timestamp() - interval '1 s', lease_until = clock_timestamp() - interval '1 ms' where id = ${it.grant.runId} returning 1`,
    );
    expect(await checkAttempt(it.db, it.key)).to.include({ stop: 'deadline' });
    await takeBackLeases(it.db, 10, TEXTS);
    expect(await turnRow(database.db, it.asked.turnId)).to.include({ status: 'FAILED', error_code: 'DEADLINE' });
  });

  it('gives the attempt of a handed-on run back', async () => {
    // rule: R9
    const it = await claimed(database.db);
    const params = { ...it.key, conversationId: it.conversationId, version: it.grant.version };
    expect(await handOnRun(it.db, params)).to.include({ status: 'QUEUED' });
    expect(await turnRow(database.db, it.asked.turnId)).to.include({ status: 'QUEUED', attempt: 0, state: 'WAITING', slots: 0 });
  });

  it('takes back at once what an ended sandbox held', async () => {
    const it = await claimed(database.db);
    expect(await endSandbox(it.db, it.sandbox.id)).to.deep.equal({ leased: true, startFailed: false });
    expect((await takeBackLeases(it.db, 10, TEXTS)).map((turn) => turn.status)).to.deep.equal(['QUEUED']);
  });

  it('does not end a sandbox that has just been given a run', async () => {
    const it = await claimed(database.db);
    expect(await endIdleSandbox(it.db, it.sandbox.id)).to.equal(false);
    await endDone(it);
    expect(await endIdleSandbox(it.db, it.sandbox.id)).to.equal(true);
    await ask(it.db, it.person, it.conversationId);
    expect(await claimOne(it.db, it.conversationId, it.sandbox.id), 'an ended sandbox claims nothing').to.equal(undefined);
  });

  it('gives a claim again to the same sandbox until it has made a call', async () => {
    const it = await claimed(database.db);
    expect(await uncalledClaim(it.db, it.sandbox.id)).to.include({ runId: it.grant.runId, epoch: 1 });
    await noteCall(it.db, it.key);
    expect(await uncalledClaim(it.db, it.sandbox.id)).to.equal(null);
  });

  it('retires slots that are held when the capacity shrinks', async () => {
    const it = await claimed(database.db, 4);
    expect(await reconcileSlots(it.db, 0)).to.deep.equal({ total: 0, held: 1, retiring: 1 });
    await endDone(it);
    expect(await reconcileSlots(it.db, 0)).to.deep.equal({ total: 0, held: 0, retiring: 0 });
  });

  it('grants freed slots to workspaces that hold fewer first, then to the oldest question', async () => {
    const { db, hostId } = await scene(database.db, 0);
    const busy = await makePerson(db);
    const quiet = await makePerson(db);
    const offers: { conversationId: ConversationId; sandboxId: SandboxId }[] = [];
    for (const person of [busy, await makePerson(db, busy.workspaceId), quiet]) {
      const conversationId = await makeMain(db, person);
      await ask(db, person, conversationId);
      offers.push({ conversationId, sandboxId: (await makeSandbox(db, person, conversationId, hostId)).id });
    }
    await reconcileSlots(db, 2);
    const { grants } = await claimFor(db, offers, TIMES);
    expect(grants.map((grant) => grant.workspaceId)).to.have.members([busy.workspaceId, quiet.workspaceId]);
    expect(grants.map((grant) => grant.conversationId)).to.include(offers[0]?.conversationId);
  });
});
