/**
 * Owns: the first half of an operator's requeue: the sandbox that has the run ends. What it held is then taken back by the reaper's own
 * statement (db/ledger/reap.ts), which alone decides what becomes of the turn.
 * rule: R5 (fenced by run and epoch: a newer attempt is left alone)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

/** False: the run is no longer held at this epoch, or its sandbox is ended already. */
export async function endSandboxOfRun(db: Executor, runId: string, epoch: number): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('ops_end_run_sandbox', z.object({ id: z.string() }))`
    with held as materialized (
      select b.id from agent_run r join sandbox b on b.id = r.sandbox_id
      where r.id = ${runId}::uuid and r.epoch = ${epoch}::int and r.state = 'LEASED' and b.state <> 'ENDED' for no key update of r, b
    )
    update sandbox b set state = 'ENDED', ended_at = clock_timestamp() from held where b.id = held.id returning b.id`);
  return row !== null;
}
