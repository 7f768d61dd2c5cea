/**
 * Owns: a long past for a page or an export: many answered questions of one conversation, written by one statement.
 * No turn of it ever ran; the rows are as the ledger's own statements leave them.
 */
import { type Database, sql } from '../../db/pool.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import { run } from './ledger.ts';

export interface History {
  questions: number;
  /** Of each answer. */
  words: string;
  /** All questions were asked before the first answer came; else each is followed by its own. */
  askedAtOnce?: boolean;
}

/** Adds to an empty conversation. Question n is `question n`; each came a minute after the one before, the last one now. */
export async function fillConversation(
  db: Database,
  id: ConversationId,
  { questions, words, askedAtOnce = false }: History,
): Promise<void> {
  const [step, lag] = askedAtOnce ? [1, questions] : [2, 1];
  await run(
    db,
    sql.unsafe`
      with fresh as materialized (
        select c.id as conversation_id, c.workspace_id, c.account_id, n, (n - 1) * ${step}::int + 1 as seq, gen_random_uuid() as turn_id,
          gen_random_uuid() as entry_id, clock_timestamp() - (${questions}::int - n) * interval '1 minute' as at
        from mentor_conversation c, generate_series(1, ${questions}::int) as n where c.id = ${id}
      ), said as (
        insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, created_at)
        select entry_id, workspace_id, conversation_id, turn_id, seq, 'QUESTION', 'app', 'question ' || n, at from fresh
        union all
        select gen_random_uuid(), workspace_id, conversation_id, turn_id, seq + ${lag}::int, 'ANSWER', 'app', ${words}, at from fresh
      ), turn as (
        insert into mentor_turn (id, workspace_id, conversation_id, account_id, question_entry_id, question_seq, request_id, surface, status,
          attempt, created_at, started_at, ended_at)
        select turn_id, workspace_id, conversation_id, account_id, entry_id, seq, turn_id::text, 'app', 'DONE', 1, at, at, at from fresh
      ), run as (
        insert into agent_run (id, workspace_id, kind, conversation_id, turn_id, state, epoch, ended_at)
        select gen_random_uuid(), workspace_id, 'TURN', conversation_id, turn_id, 'ENDED', 1, at from fresh
      )
      update mentor_conversation set last_seq = 2 * ${questions}::int, version = version + 1,
        last_answer_at = (select max(at) from fresh) where id = ${id} returning 1`,
  );
}
