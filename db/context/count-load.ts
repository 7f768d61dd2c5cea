/**
 * Owns: counting a load against its attempt, in the statement that checks the attempt. A new claim begins at zero without being told: the
 * count belongs to its epoch. rule: R5 (turn, then run, are locked and checked here)  rule: R8
 */
import { z } from 'zod';
import type { AttemptKey } from '../ledger/fence.ts';
import { type Executor, sql } from '../pool.ts';

/** `closed`: the attempt may not load (any more); ask the fence why. `full`: it has had its loads. */
export type CountedLoad = { readonly kind: 'counted'; readonly deadlineMs: number } | { readonly kind: 'full' | 'closed' };

const countedRow = z.object({ counted: z.boolean(), deadline_ms: z.number() });

export async function countLoad(db: Executor, key: AttemptKey, loadsMax: number): Promise<CountedLoad> {
  const row = await db.maybeOne(sql.prepared('context_count_load', countedRow)`
    with turn as materialized (
      select t.id, case when t.tools_loads_epoch = ${key.epoch}::int then t.tools_loads else 0 end as loads
      from mentor_turn t
      where t.id = (select r.turn_id from agent_run r where r.id = ${key.runId}::uuid) and t.status = 'RUNNING'
      for update of t
    ), run as materialized (
      select r.deadline_at from agent_run r join turn on turn.id = r.turn_id
      where r.id = ${key.runId}::uuid and r.epoch = ${key.epoch}::int and r.sandbox_id = ${key.sandboxId}::uuid and r.state = 'LEASED'
        and r.deadline_at > (select clock_timestamp())
      for share of r
    ), counted as (
      update mentor_turn t set tools_loads = turn.loads + 1, tools_loads_epoch = ${key.epoch}::int
      from turn, run where t.id = turn.id and turn.loads < ${loadsMax}::int
      returning t.id
    )
    select exists (select 1 from counted) as counted,
      greatest(0, (extract(epoch from run.deadline_at - clock_timestamp()) * 1000)::int) as deadline_ms
    from run`);
  if (!row) return { kind: 'closed' };
  return row.counted ? { kind: 'counted', deadlineMs: row.deadline_ms } : { kind: 'full' };
}
