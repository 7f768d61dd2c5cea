/**
 * Owns: what each workspace spent with each model in one calendar month (UTC), for operators. Names and numbers.
 * A call whose cost nobody knows is in no sum: it is counted beside it (ADR 11, ADR 15).
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const spendingRow = z.object({
  month: z.string(),
  workspace: z.string(),
  model: z.string(),
  calls: z.number(),
  open: z.number(),
  unknown: z.number(),
  input: z.number(),
  output: z.number(),
  cache_read: z.number(),
  cost: z.string(),
});
export type SpendingRow = z.infer<typeof spendingRow>;

const ROWS_MAX = 500;

/** The dearest first, at most 500. `month` is `YYYY-MM`, null: the present one. */
export function readSpending(db: Executor, month: string | null, workspace: string | null): Promise<readonly SpendingRow[]> {
  return db.any(sql.prepared('ops_spending', spendingRow)`
    with asked as materialized (
      select coalesce((${month}::text || '-01')::date, date_trunc('month', clock_timestamp() at time zone 'UTC')::date) as starts
    )
    select to_char(asked.starts, 'YYYY-MM') as month, w.slug as workspace, e.model, count(*)::int as calls,
      count(*) filter (where e.state = 'OPEN')::int as open, count(*) filter (where e.state = 'CLOSED' and e.cost is null)::int as unknown,
      coalesce(sum(e.input_tokens), 0)::bigint as input, coalesce(sum(e.output_tokens), 0)::bigint as output,
      coalesce(sum(e.cache_read_tokens), 0)::bigint as cache_read, trim_scale(coalesce(sum(e.cost), 0))::text as cost
    from asked join llm_usage_event e on e.opened_at >= asked.starts at time zone 'UTC'
        and e.opened_at < (asked.starts + interval '1 month') at time zone 'UTC'
      join workspace w on w.id = e.workspace_id
    where ${workspace}::text is null or w.slug = ${workspace}::text
    group by 1, 2, 3 order by coalesce(sum(e.cost), 0) desc, calls desc, 2, 3 limit ${ROWS_MAX}::int`);
}
