/**
 * Owns: what operators decide about an action of the outbox. What they see of it: db/ops/outbox.ts. Each step is kept in outbox_step. rule: R14 (their steps are listed in the
 * trigger `outbox_action_step`; sending an uncertain action again is theirs alone)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const stateRow = z.object({ before: z.string(), moved: z.boolean() });

/**
 * `sent`: the operator has seen it in Slack. `again`: it is not there, or is to be tried again. null: there is no such action;
 * `moved` false: not from the state that it is in.
 */
export async function decideAction(
  db: Executor,
  id: string,
  decision: 'sent' | 'again',
): Promise<{ readonly before: string; readonly moved: boolean } | null> {
  return db.maybeOne(sql.prepared('outbox_decide', stateRow)`
    with held as materialized (select id, state from outbox_action where id = ${id}::uuid for update),
    moved as (
      update outbox_action o set moved_by = 'operator', reason = 'operator', lease_until = null, reads = 0,
        state = case when ${decision}::text = 'sent' then 'SENT' else 'RETRY' end,
        ended_at = case when ${decision}::text = 'sent' then clock_timestamp() end,
        due_at = case when ${decision}::text = 'again' then clock_timestamp() end
      from held where o.id = held.id
        and (held.state = 'UNCERTAIN' or (${decision}::text = 'again' and held.state in ('PARKED', 'DEAD')))
      returning o.id
    )
    select held.state as before, exists (select from moved) as moved from held`);
}
