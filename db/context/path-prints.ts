/**
 * Owns: the stored prints of paths: one row for each turn, written when an attempt reads its context, two rows for each conversation.
 * One statement, and its commit waits for no flush: a print that is lost costs one comparison.
 * rule: R13
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

export interface StoredPrint {
  readonly turnId: string;
  readonly readAt: string;
  readonly timeZone: string;
  readonly summaryId: string | null;
  readonly systemHash: Buffer;
  readonly entries: Buffer;
}

export interface NewPrint extends StoredPrint {
  readonly workspaceId: string;
  readonly conversationId: string;
  readonly questionSeq: number;
}

const printRow = z.object({
  turn_id: z.string(),
  read_at: z.string(),
  time_zone: z.string(),
  summary_id: z.string().nullable(),
  system_hash: z.instanceof(Buffer),
  entries: z.instanceof(Buffer),
});

/** Stores the print and answers the one before it: of an earlier attempt of the same turn, else of an earlier turn; null when there is none. */
export async function replacePrint(db: Executor, p: NewPrint): Promise<StoredPrint | null> {
  const row = await db.maybeOne(sql.prepared('context_replace_print', printRow)`
    with quick as materialized (select set_config('synchronous_commit', 'off', true)), previous as materialized (
      select p.* from quick, mentor_path p
      where p.conversation_id = ${p.conversationId}::uuid and p.question_seq <= ${p.questionSeq}::bigint
      order by p.question_seq desc limit 1
    ), kept as (
      insert into mentor_path (turn_id, workspace_id, conversation_id, question_seq, read_at, time_zone, summary_id, system_hash, entries)
      select t.id, t.workspace_id, t.conversation_id, t.question_seq, ${p.readAt}::timestamptz, ${p.timeZone}::text, ${p.summaryId}::uuid,
        ${sql.binary(p.systemHash)}, ${sql.binary(p.entries)}
      from quick, mentor_turn t where t.id = ${p.turnId}::uuid
      on conflict (turn_id) do update set read_at = excluded.read_at, time_zone = excluded.time_zone, summary_id = excluded.summary_id,
        system_hash = excluded.system_hash, entries = excluded.entries
    ), pruned as (
      delete from mentor_path p using previous q where p.conversation_id = q.conversation_id and p.question_seq < q.question_seq
    )
    select turn_id, read_at, time_zone, summary_id, system_hash, entries from previous`);
  return (
    row && {
      turnId: row.turn_id,
      readAt: row.read_at,
      timeZone: row.time_zone,
      summaryId: row.summary_id,
      systemHash: row.system_hash,
      entries: row.entries,
    }
  );
}
