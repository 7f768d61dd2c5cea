/**
 * Owns: what operators see of the outbox, and what they decide. Each step is kept in outbox_step. rule: R14 (their steps are listed in the
 * trigger `outbox_action_step`; sending an uncertain action again is theirs alone)
 */
import { z } from 'zod';
import type { OutboxActionView } from '../../src/contract/slack.ts';
import { type Executor, sql } from '../pool.ts';

const viewRow = z.object({
  id: z.string(),
  state: z.string(),
  reason: z.string().nullable(),
  workspace: z.string(),
  team_id: z.string(),
  channel_id: z.string(),
  turn_id: z.string().nullable(),
  attempts: z.number(),
  created_at: z.string(),
});

/** `state` null: all that is not sent. Oldest first. */
export async function listActions(db: Executor, state: string | null, max: number): Promise<readonly OutboxActionView[]> {
  const rows = await db.any(sql.prepared('outbox_list', viewRow)`
    select a.id, a.state, a.reason, w.slug as workspace, a.team_id, a.channel_id, a.turn_id, a.attempts, a.created_at
    from outbox_action a join workspace w on w.id = a.workspace_id
    where case when ${state}::text is null then a.state <> 'SENT' else a.state = ${state}::text end
    order by a.seq limit ${max}::int`);
  return rows.map((row) => ({
    ...{ id: row.id, state: row.state, reason: row.reason, workspace: row.workspace, team: row.team_id, channel: row.channel_id },
    ...{ turn: row.turn_id, attempts: row.attempts, createdAt: row.created_at },
  }));
}

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
