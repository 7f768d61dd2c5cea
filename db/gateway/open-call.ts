/**
 * Owns: the fence of a model call and the opening of its usage row, in one statement: the call is on record before its first byte leaves.
 * rule: R5 (run, epoch and sandbox are checked and held until the commit)  rule: R8 (the deadline is judged by the database clock)
 * rule: R15 (the row's key is the call's own id)
 * The turn and its run are locked in the order turn, run, so a stop or a take-back is either seen here, or waits for this commit and then
 * seals the call. The count of calls is read, not locked: the gateway bounds how many calls of one attempt run at once.
 * Only runs of kind TURN have model calls: a usage row names its turn.
 */
import { z } from 'zod';
import type { CallId, ConversationId, RunId, SandboxId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export interface OpenCallParams {
  readonly callId: CallId;
  readonly runId: RunId;
  readonly epoch: number;
  readonly sandboxId: SandboxId;
  readonly workspaceId: WorkspaceId;
  readonly conversationId: ConversationId;
  readonly api: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** Calls that one attempt may open. */
  readonly callsMax: number;
}

export type OpenCallResult =
  | { readonly kind: 'opened'; readonly turnId: TurnId; readonly attempt: number }
  | { readonly kind: 'lost' }
  | { readonly kind: 'stopped'; readonly stop: 'developer' | 'deadline' }
  | { readonly kind: 'call_limit' };

const openedRow = z.object({
  verdict: z.enum(['opened', 'lost', 'developer', 'deadline', 'call_limit']),
  turn_id: z.string().nullable(),
  attempt: z.number().nullable(),
});

/** Opens the call's row and resolves after the commit, or says why the attempt may not call. */
export async function openCall(db: Executor, p: OpenCallParams): Promise<OpenCallResult> {
  const row = await db.one(sql.prepared('gateway_open_call', openedRow)`
    with claim as materialized (
      select t.id as turn_id, t.attempt, t.status, t.workspace_id, t.conversation_id, r.deadline_at
      from mentor_turn t join agent_run r on r.turn_id = t.id
      where r.id = ${p.runId}::uuid and r.epoch = ${p.epoch}::int and r.sandbox_id = ${p.sandboxId}::uuid
        and r.workspace_id = ${p.workspaceId}::uuid and r.conversation_id = ${p.conversationId}::uuid and r.state = 'LEASED'
      for share of t, r
    ), judged as materialized (
      select c.*, case
        when c.status = 'STOPPED' then 'developer'
        when c.status <> 'RUNNING' then 'lost'
        when c.deadline_at <= (select clock_timestamp()) then 'deadline'
        when (select count(*) from llm_usage_event e where e.turn_id = c.turn_id and e.attempt = c.attempt) >= ${p.callsMax}::int
          then 'call_limit'
        else 'opened' end as verdict
      from claim c
    ), opened as (
      insert into llm_usage_event (id, workspace_id, conversation_id, turn_id, run_id, epoch, attempt, api, model)
      select ${p.callId}::uuid, j.workspace_id, j.conversation_id, j.turn_id, ${p.runId}::uuid, ${p.epoch}::int, j.attempt,
        ${p.api}::text, ${p.model}::text
      from judged j where j.verdict = 'opened'
    )
    select coalesce(j.verdict, 'lost') as verdict, j.turn_id, j.attempt
    from (select 1) always left join judged j on true`);
  if (row.verdict === 'opened') return { kind: 'opened', turnId: row.turn_id as TurnId, attempt: row.attempt as number };
  if (row.verdict === 'developer' || row.verdict === 'deadline') return { kind: 'stopped', stop: row.verdict };
  return { kind: row.verdict };
}
