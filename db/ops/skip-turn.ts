/**
 * Owns: an operator's skip of a question that waits: its turn fails without (another) attempt, and those behind it move up.
 * The conversation is locked first, at the version of the read; the run must still be the one that the operator saw, waiting at that epoch.
 * rule: R6 (FAILED-ENDED is a legal pair)
 */
import { type EndedTurn, endedRow, toEnded } from '../ledger/refuse.ts';
import { type Executor, sql } from '../pool.ts';

/** null: nothing was written (it is not waiting any more, or somebody else writes this conversation: read and try again). */
export async function skipTurn(
  db: Executor,
  seen: { readonly turnId: string; readonly epoch: number },
  failure: { readonly code: string; readonly text: string },
): Promise<EndedTurn | null> {
  const row = await db.maybeOne(sql.prepared('ops_skip_turn', endedRow)`
    with at as materialized (
      select t.id as turn_id, c.id as conversation_id, c.version from mentor_turn t join mentor_conversation c on c.id = t.conversation_id
        join agent_run r on r.turn_id = t.id
      where t.id = ${seen.turnId}::uuid and t.status = 'QUEUED' and r.state = 'WAITING' and r.epoch = ${seen.epoch}::int
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from at where c.id = at.conversation_id and c.version = at.version
      returning c.id, c.workspace_id, c.account_id, c.version
    ), turn as (
      update mentor_turn t set status = 'FAILED', ended_at = clock_timestamp(), error_code = ${failure.code}::text, error_text = ${failure.text}::text
      from at join conv on conv.id = at.conversation_id where t.id = at.turn_id
      returning t.id, t.surface, t.created_at
    ), run as (
      update agent_run r set state = 'ENDED', ended_at = clock_timestamp() from turn where r.turn_id = turn.id returning r.id, r.turn_id
    )
    select conv.workspace_id, conv.account_id, conv.id as conversation_id, conv.version, turn.id as turn_id, run.id as run_id, turn.surface,
      (extract(epoch from clock_timestamp() - turn.created_at) * 1000)::float8 as age_ms
    from conv, turn, run`);
  return row && toEnded(row);
}
