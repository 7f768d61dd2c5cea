/**
 * Pulls, claims and leases at one server: what is lost on the way is found again, costs no attempt, and leaves nothing behind.
 * Time stands still unless a test moves it.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import type { Change } from '../../src/contract/changes.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { Gate } from '../support/actor-rig.ts';
import { becomes, heldSlots, openPlayed, openScene, type Pull, playSandbox, turnOf, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { claimOne, emptyLedger, makeMain, makePerson, run, TIMES } from '../support/ledger.ts';
import { away, named } from '../support/steered-database.ts';
import { done } from '../support/stub-sandboxes.ts';

describe('pulls and leases', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));
  const scene = (options: Parameters<typeof openPlayed>[2] = {}) => openPlayed(start, database.db, options);

  describe('a pull whose reply is lost is given its turn again and burns no attempt', () => {
    type Scene = Awaited<ReturnType<typeof scene>>;
    /** Each loses a pull at another point and submits a question on the way; the turn may have been claimed for it, or not. */
    const points: Record<string, (it: Scene) => Promise<void>> = {
      'before it reaches the actor': async (it) => {
        const pull = it.pull();
        pull.hangUp();
        expect(await pull.answer).to.equal(null);
        await it.server.ask(it.person, 'Why?');
      },
      'while it is parked': async (it) => {
        const pull = await it.parked();
        pull.hangUp();
        expect(await pull.answer).to.equal(null);
        await it.server.ask(it.person, 'Why?');
      },
      'while the submit claims for it': async (it) => {
        const pull = await it.parked();
        it.server.db.after = ({ name }) => void (name === 'ledger_submit' && pull.hangUp());
        await it.server.ask(it.person, 'Why?');
        expect(await pull.answer).to.equal(null);
      },
      'while the CapacityActor claims for it': async (it) => {
        let pull: Pull | undefined;
        await it.server.ask(it.person, 'Why?');
        it.server.db.after = ({ name }) => void (name === 'ledger_claim' && pull?.hangUp());
        pull = it.pull();
        expect(await pull.answer).to.equal(null);
      },
      'with the answer in its hands': async (it) => {
        const pull = await it.parked();
        await it.server.ask(it.person, 'Why?');
        expect(await pull.answer).to.include({ epoch: 1 });
      },
      'together with the reply of the database to the submit': async (it) => {
        const pull = await it.parked();
        it.server.db.loseReplies(named('ledger_submit'));
        await it.server.ask(it.person, 'Why?', { requestId: 'once' }).catch(() => undefined); // its client repeats it below
        expect(await pull.answer).to.equal(null);
        await it.server.ask(it.person, 'Why?', { requestId: 'once' });
      },
    };
    for (const [point, lose] of Object.entries(points)) {
      it(point, async () => {
        // rule: R9
        const it = await scene();
        await lose(it);
        it.server.db.after = () => undefined;
        const given = await it.pull().answer;
        expect(given).to.include({ epoch: 1 });
        const again = await it.pull().answer;
        expect(again, 'the reply was lost once more').to.include({ id: given?.id, epoch: 1 });
        await it.server.runtime.readContext(it.attempt(again));
        await it.server.runtime.endTurn(it.attempt(again), done('Because.'));
        const [turn] = await run(it.db, sql.unsafe`select status, attempt from mentor_turn`);
        expect(turn).to.deep.equal({ status: 'DONE', attempt: 1 });
        expect(await heldSlots(it.db)).to.equal(0);
      });
    }

    it('but not after it has made a call', async () => {
      const it = await scene();
      await it.server.ask(it.person, 'Why?');
      const given = await it.pull().answer;
      await it.server.runtime.readContext(it.attempt(given));
      const next = await it.parked();
      next.hangUp();
      expect(await next.answer).to.equal(null);
    });
  });

  it('finds a claim again whose reply from the database was lost, without waiting for anything', async () => {
    const { server, person, parked } = await scene();
    await server.ask(person, 'Why?');
    server.db.loseReplies(named('ledger_claim'));
    const pull = await parked();
    expect(await pull.answer).to.include({ epoch: 1 });
  });

  it('answers the pull of a claim although the mailbox of its conversation is full', async () => {
    const { server, person, parked, attempt } = await scene();
    await server.ask(person, 'Why?');
    const [busy, claiming] = [new Gate(), new Gate()];
    server.db.before = ({ name }) => {
      if (name === 'ledger_claim') return claiming.wait();
      return name === 'ledger_check_attempt' ? busy.wait() : undefined;
    };
    const pull = await parked();
    await claiming.entered;
    const nobody = attempt({ id: uuidv7(), epoch: 1 });
    const crowd = Array.from({ length: 120 }, () =>
      server.runtime.publishPartial(nobody, { offset: 0, text: '', stage: null }).catch((error: unknown) => error),
    );
    await busy.entered;
    claiming.open();
    expect(await pull.answer).to.include({ epoch: 1 });
    busy.open();
    expect((await Promise.all(crowd)).filter((reply) => reply instanceof RuntimeFault)).to.have.length.above(0);
  });

  it('serves the newest pull of a sandbox and answers the older one empty', async () => {
    const { server, person, parked } = await scene();
    const [older, newer] = [await parked(), await parked()];
    expect(await older.answer).to.equal(null);
    await server.ask(person, 'Why?');
    expect(await newer.answer).to.include({ epoch: 1 });
  });

  it('serves the living sandbox of a conversation while a pull of its ended one is still open', async () => {
    const { db, server, person, conversationId, sandbox, parked } = await scene();
    const old = await parked();
    await run(db, sql.unsafe`update sandbox set state = 'ENDED', ended_at = clock_timestamp() where id = ${sandbox.sandboxId} returning 1`);
    const living = await playSandbox(server, person, conversationId);
    const pull = await living.parked();
    const turnId = await server.ask(person, 'Why?');
    expect(await pull.answer).to.include({ epoch: 1 });
    expect(await turnOf(db, turnId)).to.include({ status: 'RUNNING', attempt: 1 });
    old.hangUp();
  });

  it('claims nothing for a pull that was given up', async () => {
    const { db, server, person, parked, pull } = await scene({ capacity: 0 });
    const waiting = await parked();
    const turnId = await server.ask(person, 'Why?');
    waiting.hangUp();
    await run(db, sql.unsafe`insert into turn_slot (slot_no) values (1) returning 1`);
    for (const change of server.changes) server.actors.changed({ ...change, slots: true });
    const next = pull();
    expect(await next.answer).to.include({ epoch: 1 });
    expect(await turnOf(db, turnId)).to.include({ attempt: 1, epoch: 1 });
  });

  it('starts a question behind many that are refused in the same moment, without waiting for a sweep', async () => {
    const { db, server } = await openScene(start, database.db, { capacity: 0 });
    const pulls: Pull[] = [];
    for (let n = 0; n < 14; n++) {
      const person = await makePerson(db);
      const { parked } = await playSandbox(server, person, await makeMain(db, person));
      pulls.push(await parked());
      await server.ask(person, 'Why?');
    }
    await until('all were judged', () => server.actors.views().every((view) => view.mailboxDepth === 0));
    await run(
      db,
      sql.unsafe`update workspace_member set ai_allowed = false where account_id <> (
        select account_id from mentor_turn order by created_at desc limit 1) returning 1`,
    );
    await run(db, sql.unsafe`insert into turn_slot (slot_no) values (1) returning 1`);
    server.actors.changed({ ...(server.changes[0] as Change), slots: true });
    expect(await pulls.at(-1)?.answer).to.include({ epoch: 1 });
  });

  it('lets an actor leave memory once its pull has run out, and not before', async () => {
    const { clock, server, conversationId, parked } = await scene();
    const pull = await parked(600_000);
    await clock.advanceAsync(300_000);
    expect(server.actors.activeConversationIds()).to.deep.equal([conversationId]);
    await clock.advanceAsync(300_000);
    expect(await pull.answer).to.equal(null);
    await clock.advanceAsync(120_000);
    expect(server.actors.activeConversationIds()).to.deep.equal([]);
  });

  describe('a server that stops claiming', () => {
    it('answers parked pulls and new ones empty, and goes on with the rest', async () => {
      const { db, server, person, parked, pull, attempt } = await scene();
      const first = await parked();
      const turnId = await server.ask(person, 'Why?');
      const mine = attempt(await first.answer);
      await server.runtime.readContext(mine);
      const second = await parked();
      server.actors.stopClaiming();
      expect(await second.answer).to.equal(null);
      expect(await pull().answer).to.equal(null);
      expect(await server.runtime.endTurn(mine, done('Because.'))).to.deep.equal({ kind: 'ended' });
      expect(await turnOf(db, turnId)).to.include({ status: 'DONE' });
      const next = await server.ask(person, 'And?');
      expect(await turnOf(db, next)).to.include({ status: 'QUEUED', attempt: 0 });
    });

    it('gives the attempt of a claim back that was under way', async () => {
      // rule: R9
      const { db, server, person, pull } = await scene();
      const turnId = await server.ask(person, 'Why?');
      server.db.after = ({ name }) => void (name === 'ledger_claim' && server.actors.stopClaiming());
      expect(await pull().answer).to.equal(null);
      expect(await becomes(db, turnId, 'QUEUED')).to.include({ attempt: 0, state: 'WAITING', epoch: 1 });
      expect(await heldSlots(db)).to.equal(0);
    });

    it('gives the attempt of a submit back that has just claimed for a parked pull', async () => {
      const { db, server, person, parked } = await scene();
      await parked();
      server.db.after = ({ name }) => void (name === 'ledger_submit' && server.actors.stopClaiming());
      const turnId = await server.ask(person, 'Why?');
      expect(await turnOf(db, turnId)).to.include({ status: 'QUEUED', attempt: 0, state: 'WAITING', epoch: 1 });
    });

    it('answers parked pulls when it drains, and everything that it has accepted', async () => {
      const { server, person, parked } = await scene({ capacity: 0 });
      const pull = await parked();
      const gate = new Gate();
      server.db.before = ({ name }) => (name === 'ledger_submit' ? gate.wait() : undefined);
      const submit = server.ask(person, 'Why?');
      await gate.entered;
      const drained = server.actors.drain(60_000);
      gate.open();
      expect(await drained).to.equal(true);
      expect(await pull.answer).to.equal(null);
      expect(await submit).to.be.a('string');
      const late = await server.ask(person, 'Late?').catch((error: unknown) => error);
      expect(late).to.deep.include({ code: 'DRAINING' });
    });
  });

  describe('renewals', () => {
    async function manyRunning(count: number) {
      const it = await openScene(start, database.db, { capacity: count });
      const attempts = [];
      for (let n = 0; n < count; n++) {
        const person = await makePerson(it.db);
        const { parked, attempt } = await playSandbox(it.server, person, await makeMain(it.db, person));
        const pull = await parked();
        await it.server.ask(person, 'Why?');
        attempts.push(attempt(await pull.answer));
      }
      return { ...it, attempts };
    }

    /** Time moves once all renewals wait for their statement. */
    async function together<T>(it: Awaited<ReturnType<typeof manyRunning>>, renewals: readonly Promise<T>[]): Promise<T[]> {
      const busy = () => it.server.actors.views().filter((view) => view.kind === 'conversation' && view.state === 'busy');
      await until('all wait', () => busy().length === it.attempts.length);
      await it.clock.advanceAsync(10);
      return Promise.all(renewals);
    }

    /** Renewed for 60 s, of which the statement itself has taken some. */
    function expectWhole(reply: { readonly kind: string; readonly leaseTtlMs?: number } | undefined): void {
      expect(reply).to.include({ kind: 'renewed' });
      expect(reply?.leaseTtlMs).to.be.within(30_000, 60_000);
    }

    it('of one server share one statement', async () => {
      const it = await manyRunning(12);
      it.server.db.sent.length = 0;
      const replies = await together(
        it,
        it.attempts.map((mine) => it.server.runtime.renewLease(mine)),
      );
      expect(it.server.db.names()).to.deep.equal(['ledger_renew']);
      for (const reply of replies) expectWhole(reply);
    });

    it('are answered to the attempt that asked, not to another of the same run', async () => {
      // rule: R5
      const it = await manyRunning(2);
      const [mine, other] = it.attempts;
      if (!mine || !other) throw new Error('two are running');
      // The same run under another name, sent through another conversation's actor, so that both are in one batch.
      const forged = { ...mine, epoch: 7, sandbox: { ...mine.sandbox, conversationId: other.sandbox.conversationId } };
      const replies = await together(it, [it.server.runtime.renewLease(mine), it.server.runtime.renewLease(forged)]);
      expect(replies.map((reply) => reply.kind)).to.deep.equal(['renewed', 'lost']);
      const stolen = { ...forged, epoch: mine.epoch, sandbox: { ...forged.sandbox, sandboxId: other.sandbox.sandboxId } };
      const again = await together(it, [it.server.runtime.renewLease(mine), it.server.runtime.renewLease(stolen)]);
      expect(again.map((reply) => reply.kind)).to.deep.equal(['renewed', 'lost']);
    });

    it('renew a lease whose row was held for a moment by a model call', async () => {
      const it = await manyRunning(1);
      const [mine] = it.attempts;
      if (!mine) throw new Error('one is running');
      await run(it.db, sql.unsafe`update agent_run set lease_until = clock_timestamp() + interval '5 s' returning 1`);
      const [held, through] = [new Gate(), new Gate()];
      const call = it.db.transaction(async (tx) => {
        await tx.any(sql.type(z.object({ id: z.string() }))`select id from agent_run for share`);
        held.open();
        await through.wait();
      });
      await held.wait();
      it.server.db.before = async ({ name }) => {
        if (name !== 'ledger_check_attempt') return;
        through.open();
        await call;
      };
      const [reply] = await together(it, [it.server.runtime.renewLease(mine)]);
      expectWhole(reply);
    });

    it('go on during the grace of a stop, never past it, and say why', async () => {
      const it = await manyRunning(1);
      const [mine] = it.attempts;
      if (!mine) throw new Error('one is running');
      const [turn] = await run(it.db, sql.unsafe`select t.id, t.account_id, t.workspace_id from mentor_turn t`);
      await it.server.runtime.stopTurn(
        { workspaceId: turn?.['workspace_id'] as never, accountId: turn?.['account_id'] as never },
        turn?.['id'] as never,
      );
      const [lease] = await run(it.db, sql.unsafe`select extract(epoch from lease_until - clock_timestamp()) as s from agent_run`);
      expect(Number(lease?.['s']), 'the lease runs out with the grace').to.be.within(0, TIMES.graceMs / 1_000);
      const [reply] = await together(it, [it.server.runtime.renewLease(mine)]);
      expect(reply).to.include({ kind: 'renewed', stop: 'developer' });
      expect((reply as { leaseTtlMs: number }).leaseTtlMs).to.be.at.most(TIMES.graceMs);
    });
  });

  describe('partial answers', () => {
    it('reach the sink with the turn and the attempt that they belong to', async () => {
      const { server, person, conversationId, parked, attempt } = await scene();
      const pull = await parked();
      const turnId = await server.ask(person, 'Why?');
      const mine = attempt(await pull.answer);
      expect(await server.runtime.publishPartial(mine, { offset: 0, text: 'Be', stage: 'thinking' })).to.deep.equal({ kind: 'taken' });
      expect(server.partials).to.deep.equal([
        { ...person, conversationId, turnId, epoch: 1, offset: 0, text: 'Be', stage: 'thinking', full: false },
      ]);
    });

    it('are asked for again in full when the claim was made out of sight', async () => {
      const { db, server, person, conversationId, sandbox, attempt } = await scene({ capacity: 0 });
      await server.ask(person, 'Why?'); // the cache holds it as queued
      await run(db, sql.unsafe`insert into turn_slot (slot_no) values (1) returning 1`);
      const grant = await claimOne(db, conversationId, sandbox.sandboxId);
      const mine = attempt({ id: String(grant?.runId), epoch: Number(grant?.epoch) });
      const partial = { offset: 0, text: 'x', stage: null, full: true };
      expect(await server.runtime.publishPartial(mine, partial)).to.deep.equal({ kind: 'taken', resync: true });
      expect(await server.runtime.publishPartial(mine, partial)).to.deep.equal({ kind: 'taken' });
    });
  });

  it('tells a caller that the database is away, and goes on when it is back', async () => {
    const { db, server, person, pull } = await scene();
    server.db.before = () => {
      throw away();
    };
    expect(await pull().answer.catch((error: unknown) => error)).to.deep.include({ code: 'DATABASE_UNAVAILABLE' });
    expect(await server.ask(person, 'Why?').catch((error: unknown) => error)).to.deep.include({ code: 'DATABASE_UNAVAILABLE' });
    server.db.before = () => undefined;
    const turnId = await server.ask(person, 'Why?');
    expect(await pull().answer).to.include({ epoch: 1 });
    expect(await turnOf(db, turnId)).to.include({ status: 'RUNNING' });
  });
});
