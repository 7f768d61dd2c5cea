/**
 * Owns: what was spent, as operators read it: per purse and month, and call by call for one turn. Numbers and names of models, never words.
 * A call whose cost nobody knows is in no sum: it is counted beside it (ADR 11, ADR 15).
 */
import { z } from 'zod';
import type { CallView, UsageView } from '../../src/contract/admin.ts';
import { type Executor, sql } from '../pool.ts';

const usageRow = z.object({
  month: z.string(),
  workspace: z.string().nullable(),
  budget: z.string().nullable(),
  spent: z.string(),
  calls: z.number(),
  unknown_calls: z.number(),
});

/**
 * The installation (workspace null) and each workspace that has a budget, spent something or called in that month (UTC); only the one workspace
 * when it is named. `month` is `YYYY-MM`, null: the present one.
 */
export async function readUsage(db: Executor, month: string | null, workspaceId: string | null): Promise<readonly UsageView[]> {
  const rows = await db.any(sql.prepared('models_read_usage', usageRow)`
    with asked as materialized (
      select coalesce((${month}::text || '-01')::date, date_trunc('month', clock_timestamp() at time zone 'UTC')::date) as starts
    ), call as materialized (
      select e.workspace_id, count(*)::int as calls, count(*) filter (where e.state = 'CLOSED' and e.cost is null)::int as unknown
      from asked, llm_usage_event e
      where e.opened_at >= asked.starts at time zone 'UTC' and e.opened_at < (asked.starts + interval '1 month') at time zone 'UTC'
      group by e.workspace_id
    ), spent as materialized (
      select s.workspace_id, s.cost from asked join llm_spend s on s.month = asked.starts
    ), purse as (
      select null::uuid as workspace_id
      union select workspace_id from llm_budget union select workspace_id from spent union select workspace_id from call
    )
    select to_char(asked.starts, 'YYYY-MM') as month, w.slug as workspace, trim_scale(b.monthly_limit)::text as budget,
      trim_scale(coalesce((select sum(s.cost) from spent s where p.workspace_id is null or s.workspace_id = p.workspace_id), 0))::text as spent,
      coalesce((select sum(c.calls)::int from call c where p.workspace_id is null or c.workspace_id = p.workspace_id), 0) as calls,
      coalesce((select sum(c.unknown)::int from call c where p.workspace_id is null or c.workspace_id = p.workspace_id), 0) as unknown_calls
    from asked, purse p left join workspace w on w.id = p.workspace_id
      left join llm_budget b on b.workspace_id is not distinct from p.workspace_id
    where ${workspaceId}::uuid is null or p.workspace_id = ${workspaceId}::uuid
    order by w.slug nulls first`);
  return rows.map(({ unknown_calls: unknownCalls, ...row }) => ({ ...row, unknownCalls }));
}

const callRow = z.object({
  id: z.string(),
  attempt: z.number(),
  api: z.string(),
  model: z.string(),
  outcome: z.string().nullable(),
  http_status: z.number().nullable(),
  input: z.number().nullable(),
  output: z.number().nullable(),
  cache_read: z.number().nullable(),
  cache_write: z.number().nullable(),
  cost: z.string().nullable(),
  opened_at: z.string(),
  closed_at: z.string().nullable(),
});

/** Calls of a turn that are listed: more than it may make. */
const CALLS_MAX = 200;

/** Every model call of the turn, in the order in which they were opened. */
export async function readCalls(db: Executor, turnId: string): Promise<readonly CallView[]> {
  const rows = await db.any(sql.prepared('models_read_calls', callRow)`
    select id, attempt, api, model, outcome, http_status, input_tokens as input, output_tokens as output, cache_read_tokens as cache_read,
      cache_write_tokens as cache_write, trim_scale(cost)::text as cost, opened_at, closed_at
    from llm_usage_event where turn_id = ${turnId}::uuid order by opened_at, id limit ${CALLS_MAX}::int`);
  return rows.map((row) => ({
    ...{ id: row.id, attempt: row.attempt, api: row.api, model: row.model, outcome: row.outcome ?? 'open', status: row.http_status },
    tokens: { input: row.input, output: row.output, cacheRead: row.cache_read, cacheWrite: row.cache_write },
    cost: row.cost ?? (row.closed_at === null ? null : 'unknown'),
    ...{ openedAt: row.opened_at, closedAt: row.closed_at },
  }));
}
