/**
 * Owns: open conversations as DTOs: the main one first, then the newest threads, each with its unfinished turns and the newest ended one.
 * The cost does not depend on a conversation's length: queued and running turns have partial indexes, the newest ended one is an index's end.
 */
import { z } from 'zod';
import type { Conversation } from '../../src/contract/web.ts';
import type { AccountId, ConversationId, WorkspaceId } from '../../src/kernel/ids.ts';
import { cutText, isBlank } from '../../src/kernel/text.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from './membership.ts';
import { readOwnedTurns } from './read-turns.ts';

/** Threads of one account that a snapshot carries, newest first. */
const OPEN_THREADS_MAX = 50;
const TITLE_MAX_CHARS = 80;

export interface OwnedConversation extends MemberKey {
  readonly conversation: Conversation;
  /** The ledger's version of what was read, or an older one. */
  readonly version: number;
}

const conversationRow = z.object({
  id: z.string(),
  workspace_id: z.string(),
  account_id: z.string(),
  parent_conversation_id: z.string().nullable(),
  parent_entry_id: z.string().nullable(),
  title: z.string().nullable(),
  version: z.number(),
  last_seq: z.number(),
  last_answer_at: z.string().nullable(),
  last_read_at: z.string().nullable(),
  created_at: z.string(),
  turn_ids: z.array(z.string()),
});

/** The first line with words, in at most so many code points. */
function titleOf(words: string): string {
  const line = words.split('\n').find((one) => !isBlank(one)) ?? '';
  return cutText(line.trim(), TITLE_MAX_CHARS);
}

function toConversation(row: z.infer<typeof conversationRow>): Conversation {
  return {
    id: row.id,
    parentConversationId: row.parent_conversation_id,
    parentEntryId: row.parent_entry_id,
    ...(row.parent_entry_id === null ? {} : { title: titleOf(row.title ?? '') }),
    latestSeq: row.last_seq,
    lastAnswerAt: row.last_answer_at,
    lastReadAt: row.last_read_at,
    createdAt: row.created_at,
    turns: [],
  };
}

/** Columns of `o`, a conversation, with the ids of its unfinished turns and of the newest ended one. */
const columns = sql.fragment`o.id, o.workspace_id, o.account_id, o.parent_conversation_id, o.parent_entry_id, o.version, o.last_seq,
  o.last_answer_at, o.last_read_at, o.created_at, (select left(p.text, 400) from mentor_entry p where p.id = o.parent_entry_id) as title,
  coalesce((
    select array_agg(t.id order by t.question_seq) from (
      select q.id, q.question_seq from mentor_turn q where q.conversation_id = o.id and q.status = 'QUEUED'
      union all
      select r.id, r.question_seq from mentor_turn r where r.conversation_id = o.id and r.status = 'RUNNING'
      union all
      (select e.id, e.question_seq from mentor_turn e where e.conversation_id = o.id and e.status in ('DONE', 'STOPPED', 'FAILED')
        order by e.question_seq desc limit 1)
    ) t), '{}') as turn_ids`;

/** The open conversations of each of `members`, main ones first. Two statements for all of them. */
export async function readOpenConversations(db: Executor, members: readonly MemberKey[]): Promise<readonly OwnedConversation[]> {
  if (members.length === 0) return [];
  const workspaces = members.map((member) => member.workspaceId);
  const accounts = members.map((member) => member.accountId);
  const rows = await db.any(sql.prepared('web_open_conversations', conversationRow)`
    with main as materialized (
      select c.* from unnest(${sql.array(workspaces, 'uuid')}, ${sql.array(accounts, 'uuid')}) as asked(workspace_id, account_id)
      join mentor_conversation c using (workspace_id, account_id) where c.parent_conversation_id is null
    ), open as materialized (
      select * from main
      union all
      select t.* from main m cross join lateral (
        select c.* from mentor_conversation c where c.parent_conversation_id = m.id order by c.created_at desc limit ${OPEN_THREADS_MAX}
      ) t
    )
    select ${columns} from open o order by o.parent_conversation_id nulls first, o.created_at desc`);
  return withTurns(db, rows);
}

async function withTurns(db: Executor, rows: readonly z.infer<typeof conversationRow>[]): Promise<readonly OwnedConversation[]> {
  const turns = await readOwnedTurns(
    db,
    rows.flatMap((row) => row.turn_ids),
  );
  const conversations = new Map(rows.map((row) => [row.id, toConversation(row)]));
  for (const { turn } of turns) conversations.get(turn.conversationId)?.turns.push(turn);
  return rows.map((row) => ({
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    conversation: conversations.get(row.id) ?? toConversation(row),
    version: row.version,
  }));
}

/** The member's open threads, newest first. */
export async function readThreads(db: Executor, member: MemberKey): Promise<readonly Conversation[]> {
  const all = await readOpenConversations(db, [member]);
  return all.map(({ conversation }) => conversation).filter(({ parentConversationId }) => parentConversationId !== null);
}

/** One of the member's own conversations, main or thread, or null: another account's is not there for them. rule: R16 */
export async function readOwnConversation(db: Executor, member: MemberKey, id: ConversationId): Promise<Conversation | null> {
  const rows = await db.any(sql.prepared('web_read_own_conversation', conversationRow)`
    select ${columns} from mentor_conversation o
    where o.id = ${id} and o.workspace_id = ${member.workspaceId} and o.account_id = ${member.accountId}`);
  const [own] = await withTurns(db, rows);
  return own?.conversation ?? null;
}

/** The member's main conversation, or null before the first question. */
export async function readConversation(db: Executor, member: MemberKey): Promise<Conversation | null> {
  const [main] = await readOpenConversations(db, [member]);
  return main?.conversation ?? null;
}

const markRow = z.object({ id: z.string(), workspace_id: z.string(), account_id: z.string(), last_read_at: z.string().nullable() });

export interface ReadMark extends MemberKey {
  readonly conversationId: ConversationId;
  readonly lastReadAt: string | null;
}

/** The read markers of conversations. */
export async function readMarks(db: Executor, ids: readonly string[]): Promise<readonly ReadMark[]> {
  if (ids.length === 0) return [];
  const rows = await db.any(sql.prepared('web_read_marks', markRow)`
    select id, workspace_id, account_id, last_read_at from mentor_conversation where id = any(${sql.array(ids, 'uuid')})`);
  return rows.map((row) => ({
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    conversationId: row.id as ConversationId,
    lastReadAt: row.last_read_at,
  }));
}
