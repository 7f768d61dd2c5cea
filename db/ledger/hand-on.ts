/**
 * Owns: giving an attempt back without an answer, in one statement.
 * rule: R9 (a run that is handed on gives its attempt back)  rule: R5
 */
import { z } from 'zod';
import type { ConversationId, TurnId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { AttemptKey } from './fence.ts';
import { ATTEMPT_TIME, TURN_TIMES, type TurnTiming, timingRow, toTiming } from './timing.ts';

export interface HandOnParams extends AttemptKey {
  readonly conversationId: ConversationId;
  readonly version: number;
}

/** null: nothing was written (the attempt lost its run, or the version moved). A stopped turn stays stopped; its run ends. */
export type HandOnResult = {
  readonly version: number;
  readonly turnId: TurnId;
  readonly status: 'QUEUED' | 'STOPPED';
  readonly timing: TurnTiming;
} | null;

const handOnRow = timingRow.extend({ version: z.number(), turn_id: z.string(), status: z.enum(['QUEUED', 'STOPPED']) });

export async function handOnRun(db: Executor, p: HandOnParams): Promise<HandOnResult> {
  const row = await db.maybeOne(sql.prepared('ledger_hand_on', handOnRow)`
    with claim as materialized (
      select r.id, r.turn_id, r.called_at from agent_run r
      where r.id = ${p.runId}::uuid and r.epoch = ${p.epoch}::int and r.sandbox_id = ${p.sandboxId}::uuid and r.state = 'LEASED'
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from claim
      where c.id = ${p.conversationId}::uuid and c.version = ${p.version}::bigint
      returning c.version
    ), turn as (
      update mentor_turn t set
        status = case when t.status = 'RUNNING' then 'QUEUED' else t.status end,
        attempt = case when t.status = 'RUNNING' then t.attempt - 1 else t.attempt end
      from claim, conv where t.id = claim.turn_id
      returning t.id, t.status, t.surface, t.created_at, t.started_at, t.ended_at
    ), run as (
      update agent_run r set
        state = case when turn.status = 'QUEUED' then 'WAITING' else 'ENDED' end,
        ended_at = case when turn.status = 'QUEUED' then null else clock_timestamp() end,
        sandbox_id = null, lease_until = null, deadline_at = null, bound_at = null, called_at = null
      from turn where r.turn_id = turn.id
      returning r.id
    ), freed as (
      update turn_slot s set run_id = null from run where s.run_id = run.id
    )
    select conv.version, turn.id as turn_id, turn.status, ${TURN_TIMES}, ${ATTEMPT_TIME} from conv, turn, claim`);
  return row && { version: row.version, turnId: row.turn_id as TurnId, status: row.status, timing: toTiming(row) };
}
