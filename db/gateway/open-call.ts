/**
 * Owns: the fence of a model call and the opening of its usage row, in one statement: the call is on record before its first byte leaves.
 * rule: R5 (run, epoch and sandbox are checked and held until the commit)  rule: R8 (the deadline is judged by the database clock)
 * rule: R15 (the row's key is the call's own id; the price is that of the turn's admission)
 * The turn and its run are locked in the order turn, run, so a stop or a take-back is either seen here, or waits for this commit and then
 * seals the call. The turn counts its calls in the same statement, under that lock: however many arrive at once, at whichever servers, none
 * leaves beyond the limit. Renewals of the lease do not wait: the run itself is only shared.
 * Only runs of kind TURN have model calls: a usage row names its turn.
 */
import { z } from 'zod';
import type { LlmApi } from '../../src/contract/agent.ts';
import type { CallId, ConversationId, HostId, RunId, SandboxId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { sandboxLives } from '../ledger/fence.ts';
import { type Admission, admissionRow } from '../models/admission.ts';
import { type Executor, sql } from '../pool.ts';

export interface OpenCallParams {
  readonly callId: CallId;
  /** The server that sends it. */
  readonly hostId: HostId;
  readonly runId: RunId;
  readonly epoch: number;
  readonly sandboxId: SandboxId;
  readonly workspaceId: WorkspaceId;
  readonly conversationId: ConversationId;
  /** The wire that the sandbox speaks. */
  readonly api: LlmApi;
  /** Calls that one turn may open, over all of its attempts. */
  readonly callsMax: number;
}

/** Where an opened call goes: what the turn's admission froze, and the connection as it is now. */
export interface CallTarget {
  readonly connectionId: string;
  /** Changes with what a provider is built from. */
  readonly stamp: string;
  /** Who holds the key: the environment of a server, or the row; nobody where the model is built in. */
  readonly source: 'environment' | 'built-in' | 'admin';
  readonly api: LlmApi;
  readonly providerModel: string;
}

export type OpenCallResult =
  | { readonly kind: 'opened'; readonly turnId: TurnId; readonly attempt: number; readonly target: CallTarget }
  | { readonly kind: 'lost' }
  /** The sandbox speaks another wire than the turn's model. */
  | { readonly kind: 'wrong_wire'; readonly api: LlmApi }
  /** The turn's connection was disabled. */
  | { readonly kind: 'no_model' }
  | { readonly kind: 'stopped'; readonly stop: 'developer' | 'deadline' }
  | { readonly kind: 'call_limit' };

const openedRow = z.object({
  verdict: z.enum(['opened', 'lost', 'developer', 'deadline', 'no_model', 'wrong_wire', 'call_limit']),
  turn_id: z.string().nullable(),
  attempt: z.number().nullable(),
  admission: admissionRow.partial().nullable(),
  stamp: z.string().nullable(),
  source: z.enum(['environment', 'built-in', 'admin']).nullable(),
});

/** Opens the call's row and resolves after the commit, or says why the attempt may not call. */
export async function openCall(db: Executor, p: OpenCallParams): Promise<OpenCallResult> {
  const row = await db.one(sql.prepared('gateway_open_call', openedRow)`
    with claim as materialized (
      select t.id as turn_id, t.attempt, t.status, t.model_calls, t.workspace_id, t.conversation_id, r.deadline_at,
        coalesce(t.admission, turn_admission(t.workspace_id, t.account_id)) as admission
      from mentor_turn t join agent_run r on r.turn_id = t.id
      where r.id = ${p.runId}::uuid and r.epoch = ${p.epoch}::int and r.sandbox_id = ${p.sandboxId}::uuid
        and r.workspace_id = ${p.workspaceId}::uuid and r.conversation_id = ${p.conversationId}::uuid and r.state = 'LEASED'
        and ${sandboxLives}
      for no key update of t for share of r
    ), judged as materialized (
      select c.*, k.id as connection_id, k.updated_at::text as stamp,
        case when k.base_url is null then 'built-in' else k.source end as source, case
        when c.status = 'STOPPED' then 'developer'
        when c.status <> 'RUNNING' then 'lost'
        when c.deadline_at <= (select clock_timestamp()) then 'deadline'
        when c.model_calls >= ${p.callsMax}::int then 'call_limit'
        when k.id is null or k.disabled_at is not null then 'no_model'
        when c.admission->>'api' <> ${p.api}::text then 'wrong_wire'
        else 'opened' end as verdict
      from claim c left join llm_connection k on k.id = (c.admission->>'connectionId')::uuid
    ), counted as (
      update mentor_turn t set model_calls = t.model_calls + 1 from judged j where t.id = j.turn_id and j.verdict = 'opened'
    ), opened as (
      insert into llm_usage_event (id, workspace_id, conversation_id, turn_id, run_id, epoch, attempt, api, model,
        connection_id, model_id, price_kind, input_price, output_price, cache_read_price, cache_write_price, host_id)
      select ${p.callId}::uuid, j.workspace_id, j.conversation_id, j.turn_id, ${p.runId}::uuid, ${p.epoch}::int, j.attempt,
        ${p.api}::text, j.admission->>'providerModel', j.connection_id, (j.admission->>'modelId')::uuid, j.admission->>'priceKind',
        (j.admission->>'inputPrice')::numeric, (j.admission->>'outputPrice')::numeric,
        (j.admission->>'cacheReadPrice')::numeric, (j.admission->>'cacheWritePrice')::numeric, ${p.hostId}::uuid
      from judged j where j.verdict = 'opened'
    )
    select coalesce(j.verdict, 'lost') as verdict, j.turn_id, j.attempt, j.admission, j.stamp, j.source
    from (select 1) always left join judged j on true`);
  switch (row.verdict) {
    case 'opened':
      return { kind: 'opened', turnId: row.turn_id as TurnId, attempt: row.attempt as number, target: toTarget(row) };
    case 'developer':
    case 'deadline':
      return { kind: 'stopped', stop: row.verdict };
    case 'wrong_wire':
      return { kind: 'wrong_wire', api: row.admission?.api as LlmApi };
    default:
      return { kind: row.verdict };
  }
}

function toTarget({ admission, stamp, source }: z.infer<typeof openedRow>): CallTarget {
  const { connectionId, api, providerModel } = admission as Admission;
  return { connectionId, api, providerModel, stamp: stamp as string, source: source as CallTarget['source'] };
}
