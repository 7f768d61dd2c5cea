/**
 * Owns: taking back attempts whose lease has run out or whose sandbox is gone. Only the ReaperActor calls it.
 * rule: R8 (the database clock judges)  rule: R9 (first loss requeues, second fails)  rule: R6
 * The first lost lease returns the turn to the queue, the second fails it, a passed deadline fails it, a stopped turn stays stopped.
 * Conversations are locked first, in order, SKIP LOCKED, at the version of the read; then turn and run, in this order as everywhere (the
 * opening of a model call holds both, without the conversation). The lease is judged on the locked run: a renewal changes no version.
 */
import { z } from 'zod';
import type { AccountId, ConversationId, RunId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import { TURN_TIMES, type TurnTiming, timingRow, toTiming } from './timing.ts';

export interface ReapTexts {
  readonly failed: { readonly code: string; readonly text: string };
  readonly deadline: { readonly code: string; readonly text: string };
  /**
   * End the sandbox of a lease that has run out in the same statement. The reaper ends silent sandboxes first (endSilentSandboxes), but a lease may
   * run out between the two, and a conversation must not wait for a sandbox that does not answer.
   */
  readonly endsSandbox?: boolean;
}

export interface TakenBack {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  readonly conversationId: ConversationId;
  readonly version: number;
  readonly turnId: TurnId;
  readonly runId: RunId;
  readonly epoch: number;
  readonly status: 'QUEUED' | 'FAILED' | 'STOPPED';
  /**
   * Why it was taken back: its deadline is over; or its lease ran out (its sandbox is ended for that, before); or its sandbox is gone while the
   * lease still held.
   */
  readonly cause: 'sandbox' | 'deadline' | 'lease';
  readonly timing: TurnTiming;
}

const takenRow = timingRow.extend({
  workspace_id: z.string(),
  account_id: z.string(),
  conversation_id: z.string(),
  version: z.number(),
  turn_id: z.string(),
  run_id: z.string(),
  epoch: z.number(),
  status: z.enum(['QUEUED', 'FAILED', 'STOPPED']),
  cause: z.enum(['sandbox', 'deadline', 'lease']),
});

/** One bounded batch, oldest lease first. A full batch means that there may be more. */
export async function takeBackLeases(db: Executor, batchMax: number, texts: ReapTexts): Promise<readonly TakenBack[]> {
  const rows = await db.any(sql.prepared('ledger_reap', takenRow)`
    with due as materialized (
      select r.id as run_id, r.conversation_id, c.version, b.state = 'ENDED' as orphan
      from agent_run r join mentor_conversation c on c.id = r.conversation_id join sandbox b on b.id = r.sandbox_id
      where r.state = 'LEASED' and (r.lease_until <= (select clock_timestamp()) or b.state = 'ENDED')
      order by r.lease_until limit ${batchMax}::int
    ), locked as materialized (
      select c.id as conversation_id, d.run_id, d.orphan
      from mentor_conversation c join due d on d.conversation_id = c.id
      where c.version = d.version
      order by c.id for update of c skip locked
    ), held as materialized (
      select t.id as turn_id, t.account_id, t.status, t.attempt, r.id as run_id, r.epoch, r.called_at, r.conversation_id, r.sandbox_id,
        r.deadline_at <= (select clock_timestamp()) as late, r.lease_until <= clock_timestamp() as expired
      from locked l join agent_run r on r.id = l.run_id join mentor_turn t on t.id = r.turn_id
      where r.state = 'LEASED' and (l.orphan or r.lease_until <= clock_timestamp())
      for no key update of t, r skip locked
    ), verdict as materialized (
      select h.*, case when h.status = 'STOPPED' then 'STOPPED' when h.attempt < 2 and not h.late then 'QUEUED' else 'FAILED' end as becomes
      from held h
    ), turn as (
      update mentor_turn t set
        status = v.becomes,
        ended_at = case when v.becomes = 'QUEUED' then null else coalesce(t.ended_at, clock_timestamp()) end,
        error_code = case when v.becomes = 'FAILED' then case when v.late then ${texts.deadline.code}::text else ${texts.failed.code}::text end end,
        error_text = case when v.becomes = 'FAILED' then case when v.late then ${texts.deadline.text}::text else ${texts.failed.text}::text end end
      from verdict v where t.id = v.turn_id
      returning t.id, t.surface, t.created_at, t.started_at, t.ended_at
    ), run as (
      update agent_run r set
        state = case when v.becomes = 'QUEUED' then 'WAITING' else 'ENDED' end,
        ended_at = case when v.becomes = 'QUEUED' then null else clock_timestamp() end,
        sandbox_id = null, lease_until = null, deadline_at = null, bound_at = null, called_at = null
      from verdict v join turn on turn.id = v.turn_id where r.id = v.run_id
      returning r.id
    ), freed as (
      update turn_slot s set run_id = null from run where s.run_id = run.id
    ), box as (
      update sandbox b set state = 'ENDED', ended_at = clock_timestamp() from verdict v
      where ${texts.endsSandbox ?? false}::boolean and b.id = v.sandbox_id and b.state <> 'ENDED'
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from verdict v where c.id = v.conversation_id
      returning c.id, c.workspace_id, c.version
    )
    select conv.workspace_id, v.account_id, conv.id as conversation_id, conv.version, v.turn_id, v.run_id, v.epoch, v.becomes as status,
      case when v.late then 'deadline' when v.expired then 'lease' else 'sandbox' end as cause, ${TURN_TIMES},
      (extract(epoch from clock_timestamp() - v.called_at) * 1000)::float8 as attempt_ms
    from verdict v join conv on conv.id = v.conversation_id join turn on turn.id = v.turn_id`);
  return rows.map((row) => ({
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    conversationId: row.conversation_id as ConversationId,
    version: row.version,
    turnId: row.turn_id as TurnId,
    runId: row.run_id as RunId,
    epoch: row.epoch,
    status: row.status,
    cause: row.cause,
    timing: toTiming(row),
  }));
}
