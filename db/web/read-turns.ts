/**
 * Owns: turns as DTOs, including why a queued one waits (seed "MentorTurnWaits": two facts, and both are rows).
 * `waitingFor` is FREE_HEPH when a server may start the turn (view claimable_turn) and every slot is taken; `position` is then its rank in
 * claim order. That is a second statement, run only when a queued turn was asked for while every slot is taken: other reads stay cheap,
 * and their statement stays small enough that PostgreSQL keeps one plan for it.
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

export const turnRow = z.object({
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
  /** It is queued and every slot is taken: why it waits is worth asking. */
  may_wait: z.boolean(),
});
const rankRow = z.object({ id: z.string(), rank: z.number() });

function toOwnedTurn(row: z.infer<typeof turnRow>, rank: number | null): OwnedTurn {
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
      waitingFor: rank === null ? null : 'FREE_HEPH',
      position: rank,
      stage: null,
      error,
      createdAt: row.created_at,
      startedAt: row.started_at,
      endedAt: row.ended_at,
    },
  };
}

/** Of `t`, a turn: why it waits is worth asking. */
export const mayWait = sql.fragment`t.status = 'QUEUED' and exists (select 1 from turn_slot where not retiring)
  and not exists (select 1 from turn_slot where run_id is null and not retiring)`;

/** The turns with these ids that exist, in order of their questions, each with its owner. */
export async function readOwnedTurns(db: Executor, ids: readonly string[]): Promise<readonly OwnedTurn[]> {
  if (ids.length === 0) return [];
  const rows = await db.any(sql.prepared('web_read_turns', turnRow)`
    select t.id, t.workspace_id, t.account_id, t.conversation_id, t.question_entry_id, t.request_id, t.status, t.attempt,
      t.error_code, t.error_text, t.created_at, t.started_at, t.ended_at, ${mayWait} as may_wait
    from mentor_turn t where t.id = any(${sql.array(ids, 'uuid')})
    order by t.conversation_id, t.question_seq`);
  return toOwnedTurns(db, rows);
}

/** The rows as turns, with the rank of those that wait for a slot. */
export async function toOwnedTurns(db: Executor, rows: readonly z.infer<typeof turnRow>[]): Promise<readonly OwnedTurn[]> {
  const ranks = await readRanks(
    db,
    rows.filter((row) => row.may_wait).map((row) => row.id),
  );
  return rows.map((row) => toOwnedTurn(row, ranks.get(row.id) ?? null));
}

/** Rank in claim order, from 1, of those of the turns that a server may start. */
async function readRanks(db: Executor, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await db.any(sql.prepared('web_read_ranks', rankRow)`
    select id, rank from claim_order where id = any(${sql.array(ids, 'uuid')})`);
  return new Map(rows.map(({ id, rank }) => [id, rank]));
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
