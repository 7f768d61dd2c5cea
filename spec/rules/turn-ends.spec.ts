/**
 * Each turn that ends is told once to metrics and traces, and each attempt once, however it ends: what is not told is in no rate and no trace.
 */
import { expect } from 'chai';
import type { EndedAttemptReport, EndedTurnReport, TurnObserver } from '../../actors/index.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { becomes, openScene, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { done, type TurnScript } from '../support/stub-sandboxes.ts';

describe('what is told of a turn that ends', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  async function open(script: TurnScript) {
    const turns: EndedTurnReport[] = [];
    const attempts: EndedAttemptReport[] = [];
    const observer: TurnObserver = {
      turnEnded: (turn) => void turns.push(turn),
      attemptEnded: (attempt) => void attempts.push(attempt),
      ...{ attemptTakenBack: () => undefined, fencingRejected: () => undefined, leaseRenewed: () => undefined },
      ...{ sandboxStart: () => undefined, erased: () => undefined },
    };
    const it = await openScene(start, database.db, { script, turns: observer });
    const outcomes = () => turns.map(({ outcome }) => outcome);
    const hows = () => attempts.map(({ epoch, how }) => `${epoch} ${how}`);
    return { ...it, turns, attempts, outcomes, hows };
  }
  const member = ({ workspaceId, accountId }: { workspaceId: never; accountId: never }) => ({ workspaceId, accountId });

  it('an answer: with its ids, how long it waited, and how long its attempt took', async () => {
    const { db, server, person, turns, attempts, hows } = await open(async (turn) => {
      await turn.context();
      await turn.end(done('Because.'));
    });
    const turnId = await server.ask(person, 'Why?');
    await becomes(db, turnId, 'DONE');
    await until('it is told', () => turns.length === 1);
    expect(turns[0]).to.include({ turnId, outcome: 'DONE', surface: 'app' });
    expect(turns[0]?.queueWaitMs)
      .to.be.at.least(0)
      .and.at.most(turns[0]?.durationMs ?? 0);
    expect(attempts[0]?.runId).to.equal(turns[0]?.runId);
    expect(attempts[0]?.ageMs)
      .to.be.at.least(0)
      .and.at.most(turns[0]?.ageMs ?? 0);
    expect(hows()).to.deep.equal(['1 DONE']);
  });

  it('a stop while it waits: at once, and without an attempt', async () => {
    const { db, server, person, outcomes, hows, turns } = await open(async () => undefined);
    await reconcileSlots(db, 0);
    const turnId = await server.ask(person, 'Why?');
    expect(await server.runtime.stopTurn(member(person as never), turnId)).to.deep.equal({ kind: 'stopped' });
    expect(await server.runtime.stopTurn(member(person as never), turnId)).to.deep.equal({ kind: 'stopped' });
    expect([outcomes(), hows(), turns[0]?.queueWaitMs]).to.deep.equal([['STOPPED'], [], null]);
  });

  it('two sandboxes that die: two attempts, one failed turn', async () => {
    const { db, server, person, outcomes, hows } = await open(async (turn) => {
      await turn.context();
      turn.die();
    });
    const turnId = await server.ask(person, 'Why?');
    await until('it has failed', async () => {
      await server.actors.reap();
      const [row] = await run(db, sql.unsafe`select status from mentor_turn where id = ${turnId}`);
      return row?.['status'] === 'FAILED';
    });
    expect([outcomes(), hows()]).to.deep.equal([['FAILED'], ['1 sandbox', '2 sandbox']]);
  });

  it('a run that is handed on: an attempt that ended, and a turn that goes on', async () => {
    const { db, server, person, outcomes, hows } = await open(async (turn) => {
      await turn.context();
      await (turn.run.epoch === 1 ? turn.handOn() : turn.end(done('Because.')));
    });
    const turnId = await server.ask(person, 'Why?');
    await becomes(db, turnId, 'DONE');
    await until('it is told', () => outcomes().length === 1);
    expect([outcomes(), hows()]).to.deep.equal([['DONE'], ['1 handed-on', '2 DONE']]);
  });

  it('a lease that ran out: the attempt is told as that, although its sandbox is ended for it first', async () => {
    const { db, server, person, hows } = await open(async (turn) => {
      await turn.context();
      if (turn.run.epoch > 1) await turn.end(done('Because.'));
    });
    const turnId = await server.ask(person, 'Why?');
    await becomes(db, turnId, 'RUNNING');
    await run(db, sql.unsafe`update agent_run set lease_until = clock_timestamp() - interval '1 s' where turn_id = ${turnId} returning 1`);
    await server.actors.reap();
    expect(hows()).to.deep.equal(['1 lease']);
  });
});
