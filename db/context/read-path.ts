/**
 * Owns: what the path builder reads, in two statements: the facts of an attempt's turn, and the conversation's entries up to its question.
 */
import { z } from 'zod';
import type { ConversationId, EntryId, RunId, TurnId } from '../../src/kernel/ids.ts';
import { type Admission, admissionRow } from '../models/admission.ts';
import { type Executor, sql } from '../pool.ts';

const factsRow = z.object({
  conversation_id: z.string(),
  turn_id: z.string(),
  question_entry_id: z.string(),
  surface: z.enum(['app', 'slack']),
  page: z.object({ url: z.string(), title: z.string() }).nullable(),
  asked_at: z.string(),
  now: z.string(),
  previous_at: z.string().nullable(),
  display_name: z.string(),
  time_zone: z.string(),
  workspace_name: z.string(),
  workspace_slug: z.string(),
  admission: admissionRow.nullable(),
});

/** Who asks what, where and when. Times are ISO 8601 in UTC. */
export interface TurnFacts {
  readonly conversationId: ConversationId;
  readonly turnId: TurnId;
  readonly questionEntryId: EntryId;
  readonly surface: 'app' | 'slack';
  readonly page: { readonly url: string; readonly title: string } | null;
  readonly now: string;
  /** When the entry before the question was written. */
  readonly previousAt: string | null;
  readonly displayName: string;
  readonly timeZone: string;
  readonly workspaceName: string;
  readonly workspaceSlug: string;
  /** As it was frozen when this attempt was claimed; null: a server without admissions claimed it. */
  readonly admission: Admission | null;
}

export async function readTurnFacts(db: Executor, runId: RunId): Promise<TurnFacts | null> {
  const row = await db.maybeOne(sql.prepared('context_turn_facts', factsRow)`
    select t.conversation_id, t.id as turn_id, t.question_entry_id, t.surface, t.page, t.created_at as asked_at,
      clock_timestamp() as now, a.display_name, a.time_zone, w.name as workspace_name, w.slug as workspace_slug, t.admission,
      (select e.created_at from mentor_entry e where e.conversation_id = t.conversation_id and e.seq < t.question_seq
        order by e.seq desc limit 1) as previous_at
    from agent_run r join mentor_turn t on t.id = r.turn_id join account a on a.id = t.account_id join workspace w on w.id = t.workspace_id
    where r.id = ${runId}`);
  if (!row) return null;
  return {
    conversationId: row.conversation_id as ConversationId,
    turnId: row.turn_id as TurnId,
    questionEntryId: row.question_entry_id as EntryId,
    surface: row.surface,
    page: row.page,
    now: row.now,
    previousAt: row.previous_at,
    displayName: row.display_name,
    timeZone: row.time_zone,
    workspaceName: row.workspace_name,
    workspaceSlug: row.workspace_slug,
    admission: row.admission,
  };
}

const pathRow = z.object({
  id: z.string(),
  turn_id: z.string().nullable(),
  kind: z.enum(['QUESTION', 'ANSWER', 'TOOL_RESULT', 'SYSTEM', 'SUMMARY', 'EDIT', 'DIGEST']),
  surface: z.enum(['app', 'slack']),
  text: z.string().nullable(),
  payload: z.string().nullable(),
  created_at: z.string(),
  erased: z.boolean(),
  status: z.enum(['QUEUED', 'RUNNING', 'DONE', 'STOPPED', 'FAILED']).nullable(),
});
export type PathRow = z.infer<typeof pathRow>;

/**
 * The entries of the turns that were asked before the run's question, and the question itself, in path order: groups by turn in the order of
 * their first seq, inside a group by seq. Turns that still wait are left out: their questions have not been put to the model.
 */
export async function readPath(db: Executor, runId: RunId): Promise<readonly PathRow[]> {
  return db.any(sql.prepared('context_read_path', pathRow)`
    select e.id, e.turn_id, e.kind, e.surface, e.text, e.payload::text as payload, e.created_at, e.erased_at is not null as erased, t.status
    from agent_run r join mentor_turn q on q.id = r.turn_id join mentor_entry e on e.conversation_id = q.conversation_id
      left join mentor_turn t on t.id = e.turn_id
    where r.id = ${runId} and coalesce(t.question_seq, e.seq) <= q.question_seq
    order by coalesce(t.question_seq, e.seq), e.seq`);
}
