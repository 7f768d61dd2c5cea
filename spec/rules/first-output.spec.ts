/**
 * How long a person waited for the first words of an answer, as the metrics have it.
 */
import { expect } from 'chai';
import type { TurnObserver } from '../../actors/index.ts';
import { sql } from '../../db/pool.ts';
import { becomes, openScene, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { done, type TurnScript } from '../support/stub-sandboxes.ts';

describe('the first words of an answer', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  /** A turn of which `speaks` is said 15 s less `sinceMs` after its question, and which ends `sinceMs` later. */
  async function ended(speaks: string | null): Promise<{ firstOutputMs: number | null; renewals: string[]; sinceMs: number }> {
    const said = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const script: TurnScript = async (turn) => {
      if ((await turn.context()) === null) return;
      if (speaks !== null) await turn.partial(speaks);
      said.resolve();
      await turn.renew();
      await mayEnd.promise;
      await turn.end(done('Because.'));
    };
    const samples: (number | null)[] = [];
    const renewals: string[] = [];
    const turns: TurnObserver = {
      turnEnded: ({ firstOutputMs }) => void samples.push(firstOutputMs),
      leaseRenewed: (outcome) => void renewals.push(outcome),
      ...{ attemptTakenBack: () => undefined, attemptEnded: () => undefined, fencingRejected: () => undefined },
      ...{ sandboxStart: () => undefined, erased: () => undefined },
    };
    const { db, server, person, clock } = await openScene(start, database.db, { script, turns });
    const turnId = await server.ask(person, 'Why?');
    await said.promise;
    const saidAtMs = clock.monotonicMs();
    await run(db, sql.unsafe`update mentor_turn set created_at = created_at - interval '15 s' where id = ${turnId} returning 1`);
    await until('its lease is renewed', async () => {
      await clock.advanceAsync(1); // renewals are gathered for some milliseconds
      return renewals.length === 1;
    });
    await clock.advanceAsync(4_000);
    mayEnd.resolve();
    await becomes(db, turnId, 'DONE');
    await until('it was counted', () => samples.length === 1);
    return { firstOutputMs: samples[0] ?? null, renewals, sinceMs: clock.monotonicMs() - saidAtMs };
  }

  it('are timed from the question', async () => {
    const { firstOutputMs, renewals, sinceMs } = await ended('Be');
    expect(sinceMs).to.be.within(4_000, 14_000);
    expect(firstOutputMs).to.be.within(15_000 - sinceMs, 15_000 - sinceMs + 3_000);
    expect(renewals).to.deep.equal(['renewed']);
  });

  it('are no words while only a stage is shown, or nothing', async () => {
    expect((await ended('')).firstOutputMs).to.equal(null);
    expect((await ended(null)).firstOutputMs).to.equal(null);
  });
});
