/**
 * Owns: what the conversation's own document and its items read. Nothing that was asked after the present question is shown.
 * rule: R16 (every statement names the account and the workspace)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';
import type { MentorContextRequest } from './read-request.ts';

const shownKind = z.enum(['question', 'answer', 'digest']);

const threadRow = z.object({ createdAt: z.string(), parentEntryId: z.string() });
const messageRow = z.object({ id: z.string(), kind: shownKind, createdAt: z.string(), status: z.string().nullable() });
const factsRow = z.object({
  is_thread: z.boolean(),
  started_at: z.string(),
  answered: z.number(),
  stopped: z.number(),
  failed: z.number(),
  threads: z.array(threadRow),
  thread_count: z.number(),
  messages: z.array(messageRow),
  message_count: z.number(),
});

export interface ConversationFacts {
  readonly isThread: boolean;
  readonly startedAt: string;
  /** Of this conversation, before the present question. */
  readonly questions: { readonly asked: number; readonly answered: number; readonly stopped: number; readonly failed: number };
  /** Newest first. Times are ISO 8601. */
  readonly threads: readonly z.infer<typeof threadRow>[];
  readonly threadCount: number;
  /** Newest first; `status`: how the turn of a question ended. */
  readonly messages: readonly z.infer<typeof messageRow>[];
  readonly messageCount: number;
}

/** Of `e`, an entry: a message with words. The predicate of ix_mentor_entry_shown. */
const message = sql.fragment`e.kind in ('QUESTION', 'ANSWER', 'DIGEST') and e.erased_at is null and e.text <> ''`;

/** Turns that are looked through for messages to list; those that were asked after the question are fewer. It keeps the plan at the index. */
const TURNS_MAX = 1_000;

/**
 * `listedMax`: threads, and messages, that are listed; all of them are counted. Counts are read from indexes and lists from their ends, so a long
 * conversation costs little more than a short one. When the question runs, every turn before it has ended.
 */
export async function readConversationFacts(db: Executor, request: MentorContextRequest, listedMax: number): Promise<ConversationFacts> {
  const id = request.conversationId;
  const ended = (status: 'DONE' | 'STOPPED' | 'FAILED') => sql.fragment`
    coalesce((select n from ended where status = ${status}), 0) - (select count(*) from later where status = ${status})`;
  const row = await db.one(sql.prepared('context_conversation_facts', factsRow)`
    with own as materialized (
      select c.parent_conversation_id is not null as is_thread, c.created_at, q.question_seq
      from mentor_conversation c join mentor_turn q on q.id = ${request.turnId}::uuid and q.conversation_id = c.id
      where c.id = ${id}::uuid and c.account_id = ${request.account.id}::uuid and c.workspace_id = ${request.workspace.id}::uuid
    ), ended as materialized (
      select t.status, count(*) as n from mentor_turn t where t.conversation_id = ${id}::uuid and t.status in ('DONE', 'STOPPED', 'FAILED')
      group by t.status
    ), later as materialized (
      select t.id, t.status from mentor_turn t where t.conversation_id = ${id}::uuid and t.question_seq >= (select question_seq from own)
      order by t.question_seq desc limit ${TURNS_MAX}::int
    ), said as materialized (
      select e.id, e.kind, e.created_at, t.status, t.question_seq as place, e.seq from (
          select t.id, t.status, t.question_seq from mentor_turn t
          where t.conversation_id = ${id}::uuid and t.question_seq < (select question_seq from own)
          order by t.question_seq desc limit ${TURNS_MAX}::int
        ) t cross join lateral (select e.* from mentor_entry e where e.turn_id = t.id and ${message} offset 0) e
      order by t.question_seq desc, e.seq desc limit ${listedMax}::int
    ), told as materialized (
      select e.id, e.kind, e.created_at, null::text as status, e.seq as place, e.seq from mentor_entry e
      where e.conversation_id = ${id}::uuid and e.turn_id is null and e.seq < (select question_seq from own) and ${message}
      order by e.seq desc limit ${listedMax}::int
    )
    select own.is_thread, own.created_at as started_at,
      ${ended('DONE')} as answered, ${ended('STOPPED')} as stopped, ${ended('FAILED')} as failed,
      coalesce((select json_agg(json_build_object('createdAt', h.created_at, 'parentEntryId', h.parent_entry_id) order by h.created_at desc, h.id desc)
        from (select h.id, h.created_at, h.parent_entry_id from mentor_conversation h where h.parent_conversation_id = ${id}::uuid
          order by h.created_at desc, h.id desc limit ${listedMax}::int) h), '[]') as threads,
      (select count(*) from mentor_conversation h where h.parent_conversation_id = ${id}::uuid) as thread_count,
      coalesce((select json_agg(json_build_object('id', m.id, 'kind', lower(m.kind), 'createdAt', m.created_at, 'status', m.status)
          order by m.place desc, m.seq desc)
        from (select * from said union all select * from told order by place desc, seq desc limit ${listedMax}::int) m), '[]') as messages,
      (select count(*) from mentor_entry e where e.conversation_id = ${id}::uuid and ${message})
        - (select count(*) from later cross join lateral (select from mentor_entry e where e.turn_id = later.id and ${message} offset 0) e)
        - (select count(*) from mentor_entry e where e.conversation_id = ${id}::uuid and e.turn_id is null
          and e.seq >= own.question_seq and ${message}) as message_count
    from own`);
  const { answered, stopped, failed } = row;
  return {
    isThread: row.is_thread,
    startedAt: row.started_at,
    questions: { asked: answered + stopped + failed, answered, stopped, failed },
    threads: row.threads,
    threadCount: row.thread_count,
    messages: row.messages,
    messageCount: row.message_count,
  };
}

const wholeRow = z.object({
  kind: shownKind,
  surface: z.enum(['app', 'slack']),
  text: z.string(),
  created_at: z.string(),
  is_thread: z.boolean(),
});

export interface WholeMessage {
  readonly kind: z.infer<typeof shownKind>;
  readonly surface: 'app' | 'slack';
  readonly text: string;
  readonly createdAt: string;
  readonly isThread: boolean;
}

/**
 * A message of the tree of the request's conversation; null when it is of another account or tree, erased, no message, or the question of a
 * turn that still waits (it has not been put to the model).
 */
export async function readMessage(db: Executor, request: MentorContextRequest, entryId: string): Promise<WholeMessage | null> {
  const row = await db.maybeOne(sql.prepared('context_message', wholeRow)`
    select lower(e.kind) as kind, e.surface, e.text, e.created_at, c.parent_conversation_id is not null as is_thread
    from mentor_entry e join mentor_conversation c on c.id = e.conversation_id
      join mentor_conversation own on own.id = ${request.conversationId}::uuid
        and coalesce(own.parent_conversation_id, own.id) = coalesce(c.parent_conversation_id, c.id)
      left join mentor_turn t on t.id = e.turn_id
    where e.id = ${entryId}::uuid and e.kind in ('QUESTION', 'ANSWER', 'DIGEST') and e.erased_at is null and e.text is not null
      and c.account_id = ${request.account.id}::uuid and c.workspace_id = ${request.workspace.id}::uuid
      and (t.status is null or t.status <> 'QUEUED')`);
  return row && { kind: row.kind, surface: row.surface, text: row.text, createdAt: row.created_at, isThread: row.is_thread };
}
