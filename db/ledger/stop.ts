/**
 * Owns: a person's stop. A queued turn never runs; a running one is STOPPED at once and its run stays leased for the grace, so that its
 * loop can end it with the cut-off answer. The lease runs out with the grace, however long ago or lately it was renewed.
 * rule: R6 (STOPPED-leased is a legal pair)  rule: R8
 */
import { z } from 'zod';
import type { ConversationId, RunId, TurnId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import { TURN_TIMES, type TurnTiming, timingRow, toTiming } from './timing.ts';

export interface StopParams {
  readonly conversationId: ConversationId;
  readonly version: number;
  readonly turnId: TurnId;
  readonly graceMs: number;
}

/** `leased`: the turn ran, its loop must still end it. null: nothing was written (the version moved, or the turn is not open). */
export type StopResult = {
  readonly version: number;
  readonly runId: RunId;
  readonly leased: boolean;
  readonly timing: TurnTiming;
} | null;

const stopRow = timingRow.extend({ version: z.number(), run_id: z.string(), leased: z.boolean() });

export async function stopTurn(db: Executor, p: StopParams): Promise<StopResult> {
  const row = await db.maybeOne(sql.prepared('ledger_stop', stopRow)`
    with target as materialized (
      select t.id, t.conversation_id from mentor_turn t
      where t.id = ${p.turnId}::uuid and t.conversation_id = ${p.conversationId}::uuid and t.status in ('QUEUED', 'RUNNING')
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from target
      where c.id = target.conversation_id and c.version = ${p.version}::bigint
      returning c.version
    ), turn as (
      update mentor_turn t set status = 'STOPPED', ended_at = clock_timestamp() from conv where t.id = ${p.turnId}::uuid
      returning t.id, t.surface, t.created_at, t.started_at, t.ended_at
    ), run as (
      update agent_run r set
        state = case when r.state = 'LEASED' then 'LEASED' else 'ENDED' end,
        ended_at = case when r.state = 'LEASED' then null else clock_timestamp() end,
        bound_at = case when r.state = 'LEASED' then least(r.bound_at, clock_timestamp() + ${p.graceMs}::int * interval '1 ms') end,
        lease_until = case when r.state = 'LEASED' then least(r.lease_until, clock_timestamp() + ${p.graceMs}::int * interval '1 ms') end
      from turn where r.turn_id = turn.id
      returning r.id, r.state
    )
    select conv.version, run.id as run_id, run.state = 'LEASED' as leased, ${TURN_TIMES}, null::float8 as attempt_ms from conv, run, turn`);
  return row && { version: row.version, runId: row.run_id as RunId, leased: row.leased, timing: toTiming(row) };
}
