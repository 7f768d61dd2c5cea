/**
 * Owns: budgets as the admin API reads and writes them, with what was spent. Admission reads the same rows (the function turn_admission).
 */
import { z } from 'zod';
import type { BudgetView } from '../../src/contract/admin.ts';
import { type Executor, sql } from '../pool.ts';

const budgetRow = z.object({ workspace: z.string().nullable(), monthly_limit: z.string(), spent: z.string(), unknown_calls: z.number() });

export async function listBudgets(db: Executor): Promise<readonly BudgetView[]> {
  const rows = await db.any(sql.prepared('models_list_budgets', budgetRow)`
    with month as materialized (select date_trunc('month', clock_timestamp() at time zone 'UTC') as starts)
    select w.slug as workspace, trim_scale(u.monthly_limit)::text as monthly_limit,
      trim_scale(coalesce((select sum(s.cost) from llm_spend s where s.month = month.starts::date
        and (u.workspace_id is null or s.workspace_id = u.workspace_id)), 0))::text as spent,
      (select count(*)::int from llm_usage_event e where e.state = 'CLOSED' and e.cost is null
        and e.opened_at >= month.starts at time zone 'UTC' and (u.workspace_id is null or e.workspace_id = u.workspace_id)) as unknown_calls
    from month, llm_budget u left join workspace w on w.id = u.workspace_id order by w.slug nulls first`);
  return rows.map(({ workspace, monthly_limit: monthlyLimit, spent, unknown_calls: unknownCalls }) => ({
    ...{ workspace, monthlyLimit, spent, unknownCalls },
  }));
}

/** `workspaceId` null: the installation; `limit` null: no budget any more. */
export async function writeBudget(db: Executor, workspaceId: string | null, limit: string | null): Promise<void> {
  const done = z.object({ written: z.boolean() });
  if (limit === null) {
    await db.any(
      sql.type(done)`delete from llm_budget where workspace_id is not distinct from ${workspaceId}::uuid returning true as written`,
    );
    return;
  }
  await db.any(sql.type(done)`
    insert into llm_budget (workspace_id, monthly_limit) values (${workspaceId}, ${limit}::text::numeric)
    on conflict on constraint ux_llm_budget do update set monthly_limit = excluded.monthly_limit, updated_at = clock_timestamp()
    returning true as written`);
}
