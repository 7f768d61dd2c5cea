/**
 * Owns: ending the turn of a conversation whose sandbox cannot be started. Only the SandboxesActor calls it, after a start has failed.
 * A turn is given up when every server that is there and starts sandboxes has failed to start one for it often enough since it was asked (or
 * since it last ran), and none is on its way: never while some server could still start it.
 * Conversations are locked first, ORDER BY id, SKIP LOCKED, at the version of the read; a turn that somebody claims meanwhile is left alone.
 * rule: R6 (FAILED-ENDED is a legal pair)
 */
import type { ConversationId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import { type EndedTurn, endedRow, toEnded } from './refuse.ts';

/** Starts that each server tries before a turn is given up. */
export const STARTS_MAX = 3;

/** Ends what cannot start among the first turns of these conversations. */
export async function giveUpTurns(
  db: Executor,
  conversationIds: readonly ConversationId[],
  failure: { readonly code: string; readonly text: string },
): Promise<readonly EndedTurn[]> {
  const rows = await db.any(sql.prepared('ledger_give_up', endedRow)`
    with host as materialized (
      select h.id from sandbox_host h where h.ended_at is null and h.sandboxes_max > 0
    ), at as materialized (
      select q.id as turn_id, c.id as conversation_id, c.version
      from claimable_turn q join mentor_turn t on t.id = q.id join mentor_conversation c on c.id = q.conversation_id
      where q.conversation_id = any(${sql.array(conversationIds, 'uuid')})
        and exists (select from host)
        and not exists (select from sandbox b where b.conversation_id = c.id and b.state <> 'ENDED')
        and not exists (
          select from host h where ${STARTS_MAX}::int > (
            select count(*) from sandbox b
            where b.conversation_id = c.id and b.start_failed and b.host_id = h.id
              and b.created_at >= greatest(t.created_at, t.started_at)))
    ), locked as materialized (
      select c.id as conversation_id, at.turn_id from at join mentor_conversation c on c.id = at.conversation_id
      where c.version = at.version order by c.id for update of c skip locked
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from locked l where c.id = l.conversation_id
      returning c.id, c.workspace_id, c.account_id, c.version
    ), turn as (
      update mentor_turn t set status = 'FAILED', ended_at = clock_timestamp(), error_code = ${failure.code}::text,
        error_text = ${failure.text}::text
      from locked l join conv on conv.id = l.conversation_id where t.id = l.turn_id
      returning t.id, t.surface, t.created_at
    ), run as (
      update agent_run r set state = 'ENDED', ended_at = clock_timestamp() from turn where r.turn_id = turn.id
      returning r.id, r.turn_id
    )
    select conv.workspace_id, conv.account_id, conv.id as conversation_id, conv.version, l.turn_id, run.id as run_id,
      turn.surface, (extract(epoch from clock_timestamp() - turn.created_at) * 1000)::float8 as age_ms
    from locked l join conv on conv.id = l.conversation_id join turn on turn.id = l.turn_id join run on run.turn_id = l.turn_id`);
  return rows.map(toEnded);
}
