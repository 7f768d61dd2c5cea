/**
 * Owns: what the conversation's own document and its items read. Nothing that was asked after the present question is shown.
 * rule: R16 (every statement names the account and the workspace)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';
import type { MentorContextRequest } from './read-request.ts';

const shownKind = z.enum(['question', 'answer', 'digest']);

const factsRow = z.object({
  is_thread: z.boolean(),
  started_at: z.string(),
  asked: z.number(),
  answered: z.number(),
  stopped: z.number(),
  failed: z.number(),
  thread_count: z.number(),
  message_count: z.number(),
});
const threadRow = z.object({ created_at: z.string(), parent_entry_id: z.string() });
const messageRow = z.object({ id: z.string(), kind: shownKind, created_at: z.string(), status: z.string().nullable() });

export interface ConversationFacts {
  readonly isThread: boolean;
  readonly startedAt: string;
  /** Of this conversation, before the present question. */
  readonly questions: { readonly asked: number; readonly answered: number; readonly stopped: number; readonly failed: number };
  /** Newest first. */
  readonly threads: readonly { readonly createdAt: string; readonly parentEntryId: string }[];
  readonly threadCount: number;
  /** Newest first; `status`: how the turn of a question ended. */
  readonly messages: readonly {
    readonly id: string;
    readonly kind: z.infer<typeof shownKind>;
    readonly createdAt: string;
    readonly status: string | null;
  }[];
  readonly messageCount: number;
}

/** `listedMax`: threads, and messages, that are listed; all of them are counted. */
export async function readConversationFacts(db: Executor, request: MentorContextRequest, listedMax: number): Promise<ConversationFacts> {
  const { conversationId, turnId } = request;
  const account = sql.fragment`c.account_id = ${request.account.id}::uuid and c.workspace_id = ${request.workspace.id}::uuid`;
  const earlier = sql.fragment`
    mentor_conversation c join mentor_turn q on q.id = ${turnId}::uuid and q.conversation_id = c.id
      join mentor_entry e on e.conversation_id = c.id and e.kind in ('QUESTION', 'ANSWER', 'DIGEST') and e.erased_at is null
      left join mentor_turn t on t.id = e.turn_id
    where c.id = ${conversationId}::uuid and ${account} and coalesce(t.question_seq, e.seq) < q.question_seq and e.text <> ''`;
  const [facts, threads, messages] = await Promise.all([
    db.one(sql.prepared('context_conversation_facts', factsRow)`
      select c.parent_conversation_id is not null as is_thread, c.created_at as started_at,
        count(t.id) as asked, count(t.id) filter (where t.status = 'DONE') as answered,
        count(t.id) filter (where t.status = 'STOPPED') as stopped, count(t.id) filter (where t.status = 'FAILED') as failed,
        (select count(*) from mentor_conversation h where h.parent_conversation_id = c.id) as thread_count,
        (select count(*) from ${earlier}) as message_count
      from mentor_conversation c join mentor_turn p on p.id = ${turnId}::uuid
        left join mentor_turn t on t.conversation_id = c.id and t.question_seq < p.question_seq
      where c.id = ${conversationId}::uuid and ${account} group by c.id`),
    db.any(sql.prepared('context_conversation_threads', threadRow)`
      select h.created_at, h.parent_entry_id from mentor_conversation h join mentor_conversation c on c.id = h.parent_conversation_id
      where c.id = ${conversationId}::uuid and ${account} order by h.created_at desc, h.id desc limit ${listedMax}`),
    db.any(sql.prepared('context_conversation_messages', messageRow)`
      select e.id, lower(e.kind) as kind, e.created_at, t.status from ${earlier}
      order by coalesce(t.question_seq, e.seq) desc, e.seq desc limit ${listedMax}`),
  ]);
  return {
    isThread: facts.is_thread,
    startedAt: facts.started_at,
    questions: { asked: facts.asked, answered: facts.answered, stopped: facts.stopped, failed: facts.failed },
    threads: threads.map((row) => ({ createdAt: row.created_at, parentEntryId: row.parent_entry_id })),
    threadCount: facts.thread_count,
    messages: messages.map((row) => ({ id: row.id, kind: row.kind, createdAt: row.created_at, status: row.status })),
    messageCount: facts.message_count,
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
