/**
 * Owns: the state of the installation in numbers, for the overview and for gauges: slots, turns, sandboxes, failures, model calls, pauses.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const loadRow = z.object({
  slots_total: z.number(),
  slots_held: z.number(),
  slots_free: z.number(),
  slots_retiring: z.number(),
  running: z.number(),
  stopping: z.number(),
  queued: z.number(),
  /** Since the question of the oldest turn that waits. */
  oldest_waiting_ms: z.number().nullable(),
  calls_of_dead_hosts: z.number(),
});
export type LoadRow = z.infer<typeof loadRow>;

/** One row; each number is of the same instant. */
export function readLoad(db: Executor): Promise<LoadRow> {
  return db.one(sql.prepared('ops_load', loadRow)`
    with slot as materialized (
      select count(*) filter (where not retiring)::int as total, count(run_id)::int as held,
        count(*) filter (where run_id is null and not retiring)::int as free, count(*) filter (where retiring)::int as retiring from turn_slot
    ), waits as materialized (
      select count(*)::int as n, min(created_at) as since from mentor_turn where status = 'QUEUED'
    ), leased as materialized (
      select count(*) filter (where t.status = 'RUNNING')::int as running, count(*) filter (where t.status = 'STOPPED')::int as stopping
      from agent_run r join mentor_turn t on t.id = r.turn_id where r.state = 'LEASED'
    )
    select slot.total as slots_total, slot.held as slots_held, slot.free as slots_free, slot.retiring as slots_retiring, leased.running,
      leased.stopping, waits.n as queued, (extract(epoch from clock_timestamp() - waits.since) * 1000)::bigint as oldest_waiting_ms,
      (select count(*)::int from llm_usage_event e join sandbox_host h on h.id = e.host_id where e.state = 'OPEN' and h.ended_at is not null)
        as calls_of_dead_hosts
    from slot, waits, leased`);
}

const countRow = z.object({ name: z.string(), count: z.number() });
export type NamedCount = z.infer<typeof countRow>;

/** Turns that failed in the last hour, by the code that their people see; most frequent first. */
export function readFailures(db: Executor): Promise<readonly NamedCount[]> {
  return db.any(sql.prepared('ops_failures', countRow)`
    select error_code as name, count(*)::int as count from mentor_turn
    where status = 'FAILED' and ended_at > (select clock_timestamp()) - interval '1 hour' group by 1 order by 2 desc, 1`);
}

/** Model calls that were opened in the last hour, by outcome (`open`: not ended). */
export function readCallOutcomes(db: Executor): Promise<readonly NamedCount[]> {
  return db.any(sql.prepared('ops_call_outcomes', countRow)`
    select coalesce(outcome, 'open') as name, count(*)::int as count from llm_usage_event
    where opened_at > (select clock_timestamp()) - interval '1 hour' group by 1 order by 2 desc, 1`);
}

/** Sandboxes that are not ended by state, and `START_FAILED` of the last hour. */
export function readSandboxStates(db: Executor): Promise<readonly NamedCount[]> {
  return db.any(sql.prepared('ops_sandbox_states', countRow)`
    select state as name, count(*)::int as count from sandbox where state <> 'ENDED' group by 1
    union all
    select 'START_FAILED', count(*)::int from sandbox where start_failed and created_at > (select clock_timestamp()) - interval '1 hour'
    having count(*) > 0 order by 1`);
}

/** What the installation has spent in this calendar month (UTC), in its one currency. Calls of unknown cost are in no sum. */
export async function readMonthCost(db: Executor): Promise<number> {
  const { cost } = await db.one(sql.prepared('ops_month_cost', z.object({ cost: z.number() }))`
    select coalesce(sum(cost), 0)::float8 as cost from llm_spend where month = date_trunc('month', clock_timestamp() at time zone 'UTC')::date`);
  return cost;
}
