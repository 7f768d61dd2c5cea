/**
 * Owns: turns as DTOs, including why a queued one waits (seed "MentorTurnWaits": two facts, and both are rows).
 * `waitingFor` is FREE_HEPH when a server may start the turn (view claimable_turn) and every slot is taken; `position` is then its rank in
 * claim order. The view is computed only when a queued turn was asked for while every slot is taken (PostgreSQL runs a CTE when its first
 * row is fetched), so other reads stay cheap.
 * Does not own: the stage (partial answers are in memory; it is null here) or who may see a turn: callers compare the owner.
 */
import { z } from 'zod';
import type { Turn } from '../../src/contract/web.ts';
import type { AccountId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from './membership.ts';

/** A turn and whose it is. */
export interface OwnedTurn extends MemberKey {
  readonly turn: Turn;
}

const turnRow = z.object({
  id: z.string(),
  workspace_id: z.string(),
  account_id: z.string(),
  conversation_id: z.string(),
  question_entry_id: z.string(),
  request_id: z.string(),
  status: z.enum(['QUEUED', 'RUNNING', 'DONE', 'STOPPED', 'FAILED']),
  attempt: z.number(),
  error_code: z.string().nullable(),
  error_text: z.string().nullable(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  ended_at: z.string().nullable(),
  rank: z.number().nullable(),
});

function toOwnedTurn(row: z.infer<typeof turnRow>): OwnedTurn {
  const error = row.error_code === null || row.error_text === null ? null : { code: row.error_code, text: row.error_text };
  return {
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    turn: {
      id: row.id,
      conversationId: row.conversation_id,
      questionEntryId: row.question_entry_id,
      requestId: row.request_id,
      status: row.status,
      attempt: row.attempt,
      waitingFor: row.rank === null ? null : 'FREE_HEPH',
      position: row.rank,
      stage: null,
      error,
      createdAt: row.created_at,
      startedAt: row.started_at,
      endedAt: row.ended_at,
    },
  };
}

/** The turns with these ids that exist, in order of their questions, each with its owner. */
export async function readOwnedTurns(db: Executor, ids: readonly string[]): Promise<readonly OwnedTurn[]> {
  if (ids.length === 0) return [];
  const rows = await db.any(sql.prepared('web_read_turns', turnRow)`
    with asked as materialized (
      select t.* from mentor_turn t where t.id = any(${sql.array(ids, 'uuid')})
    ), slots as materialized (
      select exists (select 1 from asked where status = 'QUEUED')
        and exists (select 1 from turn_slot where not retiring)
        and not exists (select 1 from turn_slot where run_id is null and not retiring) as taken
    ), ranked as materialized (
      select id, rank from claim_order
    )
    select a.id, a.workspace_id, a.account_id, a.conversation_id, a.question_entry_id, a.request_id, a.status, a.attempt,
      a.error_code, a.error_text, a.created_at, a.started_at, a.ended_at,
      case when a.status = 'QUEUED' and (select taken from slots) then (select r.rank from ranked r where r.id = a.id) end as rank
    from asked a
    order by a.conversation_id, a.question_seq`);
  return rows.map(toOwnedTurn);
}

/** The turns with these ids that exist, in order of their questions. */
export async function readTurns(db: Executor, ids: readonly string[]): Promise<readonly Turn[]> {
  return (await readOwnedTurns(db, ids)).map(({ turn }) => turn);
}

/** The member's own turn, or null: another account's turn is not there for them. rule: R16 */
export async function readTurnOf(db: Executor, member: MemberKey, id: TurnId): Promise<Turn | null> {
  const [owned] = await readOwnedTurns(db, [id]);
  return owned?.workspaceId === member.workspaceId && owned.accountId === member.accountId ? owned.turn : null;
}
