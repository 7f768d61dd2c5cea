/**
 * Owns: the write of a question. One statement: the person fence, the repeat check, the conversation's compare-and-set on its version,
 * the entry, the turn, its run, and (when a sandbox of this conversation waits, a slot is free and the turn is admitted) the claim. A question
 * that is not admitted is written all the same: the CapacityActor ends it.
 * rule: R2 (a repeated requestId returns the same rows; the unique key is the guarantee)
 * rule: R3 (seq is given by the conversation row, under its lock)
 * rule: R10 (the count of queued turns belongs to the version that the statement compares)
 * rule: R12 (the account row is held FOR SHARE; an erasure updates it)
 * A question of Slack also holds its connection FOR SHARE, after the person and before the conversation: a disconnect updates that row first,
 * so a question is either not stored, or there to be erased.
 */
import { z } from 'zod';
import type { Surface } from '../../src/contract/common.ts';
import type { Entry, PageContext, Turn } from '../../src/contract/web.ts';
import type { AccountId, ConversationId, EntryId, RunId, SandboxId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { violates } from '../faults.ts';
import { type Executor, sql } from '../pool.ts';
import type { LeaseTimes } from './claim.ts';
import type { ClaimTimes } from './fence.ts';

/** Where in Slack a question was written. */
export interface SlackOrigin {
  readonly teamId: string;
  readonly channelId: string;
  readonly userId: string;
  readonly messageTs: string;
  /** The message whose thread takes the answer. */
  readonly threadTs: string;
}

export interface SubmitParams {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  readonly conversationId: ConversationId;
  /** The version that the caller decided on. */
  readonly version: number;
  readonly requestId: string;
  readonly surface: Surface;
  readonly text: string;
  readonly page: PageContext | null;
  /** Set when the surface is slack. */
  readonly slack: SlackOrigin | null;
  readonly maxFollowUps: number;
  readonly turnId: TurnId;
  readonly entryId: EntryId;
  readonly runId: RunId;
  /** A sandbox of this conversation whose pull is parked, or null. */
  readonly sandboxId: SandboxId | null;
  readonly times: LeaseTimes;
}

/** What was stored, as a client is shown it. `turn` is null when it waits: why it waits is another read. */
export interface WrittenQuestion {
  readonly entry: Entry;
  readonly turn: Turn | null;
}

export type SubmitResult =
  | ({ readonly kind: 'written'; readonly version: number; readonly claimed: ClaimTimes | null } & WrittenQuestion)
  /** The same requestId was written before. `sameText` is false when it named other words. */
  | { readonly kind: 'repeat'; readonly turnId: TurnId; readonly entryId: EntryId; readonly sameText: boolean }
  | { readonly kind: 'full' }
  | { readonly kind: 'erased' }
  /** The Slack team is not connected to this workspace (any more). */
  | { readonly kind: 'disconnected' }
  /** Another writer was faster: load the conversation and decide again. */
  | { readonly kind: 'stale' };

const submitRow = z.object({
  allowed: z.boolean(),
  connected: z.boolean(),
  prior_turn: z.string().nullable(),
  prior_entry: z.string().nullable(),
  prior_same: z.boolean().nullable(),
  queued: z.number(),
  version: z.number().nullable(),
  lease_ms: z.number().nullable(),
  deadline_ms: z.number().nullable(),
  seq: z.number().nullable(),
  entry_at: z.string().nullable(),
  turn_at: z.string().nullable(),
  started_at: z.string().nullable(),
});
type SubmitRow = z.infer<typeof submitRow>;

export async function submitQuestion(db: Executor, p: SubmitParams): Promise<SubmitResult> {
  const row = await insertQuestion(db, p).catch((error: unknown) => {
    // Two conversations raced with one requestId: the winner's rows are read by the next try.
    if (violates(error, 'ux_mentor_turn_request')) return null;
    throw error;
  });
  if (row === null) return { kind: 'stale' };
  if (row.prior_turn && row.prior_entry) {
    return { kind: 'repeat', turnId: row.prior_turn as TurnId, entryId: row.prior_entry as EntryId, sameText: row.prior_same === true };
  }
  if (row.version !== null) {
    const claimed = row.lease_ms === null || row.deadline_ms === null ? null : { leaseTtlMs: row.lease_ms, deadlineMs: row.deadline_ms };
    return { kind: 'written', version: row.version, claimed, ...toWritten(p, row) };
  }
  if (!row.allowed) return { kind: 'erased' };
  if (!row.connected) return { kind: 'disconnected' };
  return row.queued >= p.maxFollowUps ? { kind: 'full' } : { kind: 'stale' };
}

function toWritten(p: SubmitParams, { seq, entry_at: entryAt, turn_at: turnAt, started_at: startedAt }: SubmitRow): WrittenQuestion {
  const { entryId, turnId, conversationId, surface, text, requestId } = p;
  const entry: Entry = {
    ...{ id: entryId, conversationId, seq: seq ?? 0, turnId, kind: 'question', surface, text, parts: [{ type: 'text', text }] },
    ...{ createdAt: entryAt ?? '', erasedAt: null, vote: null },
  };
  if (startedAt === null) return { entry, turn: null };
  const turn: Turn = {
    ...{ id: turnId, conversationId, questionEntryId: entryId, requestId, status: 'RUNNING', attempt: 1, waitingFor: null, position: null },
    ...{ stage: null, error: null, createdAt: turnAt ?? '', startedAt, endedAt: null },
  };
  return { entry, turn };
}

/** A main conversation is known by the direct message that it was last asked in. */
function asItsPlace(slack: SlackOrigin | null) {
  const column = (name: 'slack_team_id' | 'slack_user_id' | 'slack_channel_id', value: string | null) => sql.fragment`
    ${sql.identifier([name])} = case when c.parent_conversation_id is null then coalesce(${value}::text, c.${sql.identifier([name])}) end`;
  return sql.join(
    [
      column('slack_team_id', slack?.teamId ?? null),
      column('slack_user_id', slack?.userId ?? null),
      column('slack_channel_id', slack?.channelId ?? null),
    ],
    sql.fragment`, `,
  );
}

/** From `written`; nothing for a question of the app. */
function insertOrigin({ slack, turnId, workspaceId }: SubmitParams) {
  return sql.fragment`
    insert into slack_turn (turn_id, workspace_id, team_id, channel_id, message_ts, thread_ts)
    select ${turnId}::uuid, ${workspaceId}::uuid, ${slack?.teamId ?? null}::text, ${slack?.channelId ?? null}::text,
      ${slack?.messageTs ?? null}::text, ${slack?.threadTs ?? null}::text
    from written w where ${slack !== null}::boolean`;
}

/** A free slot for a sandbox that waits, if the turn is admitted; no row in `slot` otherwise. */
function slotFor(p: SubmitParams) {
  return sql.fragment`
    admitted as materialized (
      select a.admission, (a.admission->>'deadlineMs')::int as deadline_ms,
        least(${p.times.leaseTtlMs}::int, (a.admission->>'deadlineMs')::int + ${p.times.graceMs}::int) as lease_ms
      from (select turn_admission(${p.workspaceId}::uuid, ${p.accountId}::uuid) as admission
        where ${p.sandboxId}::uuid is not null) a
      where a.admission->>'refusal' is null
    ), slot as materialized (
      select s.slot_no, a.admission, a.deadline_ms, a.lease_ms from turn_slot s join admitted a on true join sandbox b on b.id = ${p.sandboxId}::uuid and b.state <> 'ENDED'
      where s.run_id is null and not s.retiring
        and not exists (select 1 from agent_run r where r.conversation_id = ${p.conversationId}::uuid and r.state = 'LEASED')
        and not exists (select 1 from claimable_turn)
        and not exists (select 1 from claim_pause p where coalesce(p.workspace_id, ${p.workspaceId}::uuid) = ${p.workspaceId}::uuid
          and coalesce(p.surface, ${p.surface}::text) = ${p.surface}::text)
      order by s.slot_no limit 1 for update of s skip locked for share of b skip locked`;
}

function insertQuestion(db: Executor, p: SubmitParams): Promise<SubmitRow> {
  return db.one(sql.prepared('ledger_submit', submitRow)`
    with fence as materialized (
      select id from account where id = ${p.accountId}::uuid and erasure_requested_at is null for share
    ), connected as materialized (
      select k.id from fence join slack_connection k on k.workspace_id = ${p.workspaceId}::uuid and k.team_id = ${p.slack?.teamId ?? null}::text
        and k.state = 'ACTIVE' for share of k
    ), place as materialized (
      select fence.id from fence where ${p.slack === null}::boolean or exists (select 1 from connected)
    ), prior as materialized (
      select t.id, t.question_entry_id, (e.erased_at is not null or e.text = ${p.text}::text) as same
      from mentor_turn t join mentor_entry e on e.id = t.question_entry_id
      where t.workspace_id = ${p.workspaceId}::uuid and t.account_id = ${p.accountId}::uuid
        and t.surface = ${p.surface}::text and t.request_id = ${p.requestId}::text
    ), room as materialized (
      select count(*)::int as queued from mentor_turn where conversation_id = ${p.conversationId}::uuid and status = 'QUEUED'
    ), ${slotFor(p)}
    ), conv as (
      update mentor_conversation c set version = c.version + 1, last_seq = c.last_seq + 1,
        ${asItsPlace(p.slack)}
      from place, room
      where c.id = ${p.conversationId}::uuid and c.workspace_id = ${p.workspaceId}::uuid and c.account_id = ${p.accountId}::uuid
        and c.version = ${p.version}::bigint and room.queued < ${p.maxFollowUps}::int and not exists (select 1 from prior)
      returning c.id, c.version, c.last_seq
    ), written as materialized (
      select conv.id, conv.version, conv.last_seq, s.slot_no, s.admission, s.lease_ms, s.deadline_ms from conv left join slot s on true
    ), entry as (
      insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, search_text)
      select ${p.entryId}::uuid, ${p.workspaceId}::uuid, w.id, ${p.turnId}::uuid, w.last_seq, 'QUESTION', ${p.surface}::text,
        ${p.text}::text, ${p.text}::text from written w
      returning seq, created_at
    ), turn as (
      insert into mentor_turn (id, workspace_id, conversation_id, account_id, question_entry_id, question_seq, request_id, surface, page,
        status, attempt, started_at, admission)
      select ${p.turnId}::uuid, ${p.workspaceId}::uuid, w.id, ${p.accountId}::uuid, ${p.entryId}::uuid, w.last_seq, ${p.requestId}::text,
        ${p.surface}::text, ${p.page === null ? null : JSON.stringify(p.page)}::json,
        case when w.slot_no is null then 'QUEUED' else 'RUNNING' end,
        case when w.slot_no is null then 0 else 1 end,
        case when w.slot_no is null then null else clock_timestamp() end, w.admission
      from written w
      returning created_at, started_at
    ), run as (
      insert into agent_run (id, workspace_id, kind, conversation_id, turn_id, state, epoch, sandbox_id, lease_until, deadline_at, bound_at,
        context_erasures)
      select ${p.runId}::uuid, ${p.workspaceId}::uuid, 'TURN', w.id, ${p.turnId}::uuid, 'WAITING', 0, null, null, null, null, 0
      from written w where w.slot_no is null
      union all
      select ${p.runId}::uuid, ${p.workspaceId}::uuid, 'TURN', w.id, ${p.turnId}::uuid, 'LEASED', 1, ${p.sandboxId}::uuid,
        clock_timestamp() + w.lease_ms * interval '1 ms', clock_timestamp() + w.deadline_ms * interval '1 ms',
        clock_timestamp() + (w.deadline_ms + ${p.times.graceMs}::int) * interval '1 ms', tree_erasures(w.id)
      from written w where w.slot_no is not null
    ), origin as (
      ${insertOrigin(p)}
    ), taken as (
      update turn_slot s set run_id = ${p.runId}::uuid from written w where s.slot_no = w.slot_no
    )
    select exists (select 1 from fence) as allowed, exists (select 1 from place) as connected, (select queued from room) as queued,
      (select id from prior) as prior_turn, (select question_entry_id from prior) as prior_entry, (select same from prior) as prior_same,
      (select version from written) as version, (select lease_ms from written) as lease_ms, (select deadline_ms from written) as deadline_ms,
      entry.seq, entry.created_at as entry_at, turn.created_at as turn_at, turn.started_at
    from (select 1) always left join entry on true left join turn on true`);
}
