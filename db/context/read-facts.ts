/**
 * Owns: the facts of an attempt's turn, in one bounded statement: who asks what, where and when, and what is around the question.
 * Does not own: the entries (read-path.ts), how facts are told to a model (src/context).
 */
import { z } from 'zod';
import type { PageContext } from '../../src/contract/web.ts';
import type { AccountId, ConversationId, EntryId, RunId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Admission, admissionRow } from '../models/admission.ts';
import { type Executor, sql } from '../pool.ts';

/** Who asks what, where and when. Times are ISO 8601 in UTC. */
export interface TurnFacts {
  readonly conversationId: ConversationId;
  readonly turnId: TurnId;
  readonly questionEntryId: EntryId;
  readonly surface: 'app' | 'slack';
  readonly page: PageContext | null;
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

const mentionRow = z.object({ kind: z.enum(['QUESTION', 'ANSWER', 'DIGEST']), at: z.string(), words: z.string().nullable() });
/** A message that the situation points at. `words`: its first ones; null when they were erased. */
export type Mention = z.infer<typeof mentionRow>;
const openThreadRow = mentionRow.extend({ started: z.string() });
/** A thread by its parent. */
export type OpenThread = z.infer<typeof openThreadRow>;

/** What is around a question (seed, "The situation"). */
export interface Surroundings {
  /** The developer's handle in each connected system, by the system's name. */
  readonly handles: Readonly<Record<string, string>>;
  /** Of a thread: where it hangs, and what was said in the main conversation since it began; null for the main conversation. */
  readonly thread: { readonly parent: Mention; readonly sinceCount: number; readonly since: readonly Mention[] } | null;
  /** Of the main conversation: its newest threads, newest first; empty for a thread. */
  readonly openThreads: readonly OpenThread[];
}

export interface ContextFacts extends TurnFacts, Surroundings {
  /** For the path's print (rule R13). */
  readonly questionSeq: number;
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  /** The account is an active, visible member of the workspace. rule: R16 */
  readonly isMember: boolean;
}

/** Bounds of what the situation lists. */
const OPEN_THREADS_MAX = 10;
const SINCE_MAX = 5;
/** Counting main entries since a thread began stops here. */
const SINCE_COUNT_MAX = 100;
const FIRST_WORDS_CHARS = 120;

const factsRow = z.object({
  conversation_id: z.string(),
  workspace_id: z.string(),
  turn_id: z.string(),
  question_entry_id: z.string(),
  question_seq: z.number(),
  surface: z.enum(['app', 'slack']),
  page: z.object({ url: z.string(), title: z.string(), selection: z.string().exactOptional() }).nullable(),
  now: z.string(),
  previous_at: z.string().nullable(),
  display_name: z.string(),
  time_zone: z.string(),
  workspace_name: z.string(),
  workspace_slug: z.string(),
  admission: admissionRow.nullable(),
  account_id: z.string(),
  is_member: z.boolean(),
  slack_user_id: z.string().nullable(),
  parent: mentionRow.nullable(),
  since_count: z.number(),
  since: z.array(mentionRow),
  open_threads: z.array(openThreadRow),
});

/** A shown entry, as JSON with its first words. */
const mention = sql.fragment`json_build_object('kind', e.kind, 'at', e.created_at, 'words', left(e.text, ${FIRST_WORDS_CHARS}::int))`;
const shown = sql.fragment`(e.kind in ('QUESTION', 'DIGEST') or (e.kind = 'ANSWER' and e.text is not null)) and e.erased_at is null`;

/** null: the run has no turn. Its cost does not depend on the conversation's length. */
export async function readTurnFacts(db: Executor, runId: RunId): Promise<ContextFacts | null> {
  const row = await db.maybeOne(sql.prepared('context_turn_facts', factsRow)`
    select t.conversation_id, t.workspace_id, t.id as turn_id, t.question_entry_id, t.question_seq, t.surface, t.page,
      clock_timestamp() as now, a.display_name, a.time_zone, w.name as workspace_name, w.slug as workspace_slug, t.admission, t.account_id,
      exists (select from workspace_member p where p.workspace_id = t.workspace_id and p.account_id = t.account_id and p.active and p.visible) as is_member,
      (select e.created_at from mentor_entry e where e.conversation_id = t.conversation_id and e.seq < t.question_seq
        order by e.seq desc limit 1) as previous_at,
      coalesce(m.slack_user_id, c.slack_user_id) as slack_user_id,
      (select ${mention} from mentor_entry e where e.id = c.parent_entry_id) as parent,
      (select count(*)::int from (select from mentor_entry e where e.conversation_id = m.id and e.seq > c.forked_seq and ${shown}
        order by e.seq desc limit ${SINCE_COUNT_MAX}::int) s) as since_count,
      coalesce((select json_agg(s.mention order by s.seq desc) from (select e.seq, ${mention} as mention from mentor_entry e
        where e.conversation_id = m.id and e.seq > c.forked_seq and ${shown} order by e.seq desc limit ${SINCE_MAX}::int) s), '[]') as since,
      coalesce((select json_agg(s.thread order by s.created_at desc) from (
        select h.created_at, json_build_object('kind', e.kind, 'at', e.created_at, 'words', left(e.text, ${FIRST_WORDS_CHARS}::int),
          'started', h.created_at) as thread
        from mentor_conversation h join mentor_entry e on e.id = h.parent_entry_id
        where h.parent_conversation_id = c.id order by h.created_at desc limit ${OPEN_THREADS_MAX}::int) s), '[]') as open_threads
    from agent_run r join mentor_turn t on t.id = r.turn_id join account a on a.id = t.account_id join workspace w on w.id = t.workspace_id
      join mentor_conversation c on c.id = t.conversation_id left join mentor_conversation m on m.id = c.parent_conversation_id
    where r.id = ${runId}`);
  return row && toFacts(row);
}

function toFacts(row: z.infer<typeof factsRow>): ContextFacts {
  return {
    conversationId: row.conversation_id as ConversationId,
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    isMember: row.is_member,
    turnId: row.turn_id as TurnId,
    questionEntryId: row.question_entry_id as EntryId,
    questionSeq: row.question_seq,
    surface: row.surface,
    page: row.page,
    now: row.now,
    previousAt: row.previous_at,
    displayName: row.display_name,
    timeZone: row.time_zone,
    workspaceName: row.workspace_name,
    workspaceSlug: row.workspace_slug,
    admission: row.admission,
    handles: row.slack_user_id === null ? {} : { Slack: row.slack_user_id },
    thread: row.parent && { parent: row.parent, sinceCount: row.since_count, since: row.since },
    openThreads: row.open_threads,
  };
}
