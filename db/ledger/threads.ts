/**
 * Owns: beginning a thread: a fork of the account's main conversation at one of its messages. One statement.
 * Locks in the order of the design: the person, then the main conversation, then the thread.
 * rule: R12 (the account row is held FOR SHARE)  rule: R16 (only at a message that the account sees, in its own main conversation)
 */
import { z } from 'zod';
import { type AccountId, type ConversationId, type EntryId, uuidv7, type WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export interface ThreadParams {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  /** The client's own name for the thread. */
  readonly requestId: string;
  readonly parentEntryId: EntryId;
}

export type ThreadResult =
  /** Made now, or by an earlier request with the same requestId. */
  | { readonly kind: 'thread'; readonly conversationId: ConversationId }
  /** The account sees no such message in its main conversation (any more). */
  | { readonly kind: 'no-entry' }
  /** The requestId names a thread at another message. */
  | { readonly kind: 'reused' }
  | { readonly kind: 'erased' };

const threadRow = z.object({
  allowed: z.boolean(),
  prior: z.string().nullable(),
  prior_same: z.boolean().nullable(),
  has_parent: z.boolean(),
  made: z.string().nullable(),
});

/** Requests that race with one requestId meet on its unique key; the loser reads the winner's row. */
const TRIES = 2;

export async function beginThread(db: Executor, p: ThreadParams): Promise<ThreadResult> {
  for (let tries = 0; tries < TRIES; tries++) {
    const row = await insertThread(db, p);
    if (row.prior !== null) return row.prior_same ? { kind: 'thread', conversationId: row.prior as ConversationId } : { kind: 'reused' };
    if (!row.allowed) return { kind: 'erased' };
    if (!row.has_parent) return { kind: 'no-entry' };
    if (row.made !== null) return { kind: 'thread', conversationId: row.made as ConversationId };
  }
  throw new Error('a thread was neither made nor found');
}

function insertThread(db: Executor, p: ThreadParams): Promise<z.infer<typeof threadRow>> {
  return db.one(sql.prepared('ledger_begin_thread', threadRow)`
    with fence as materialized (
      select id from account where id = ${p.accountId}::uuid and erasure_requested_at is null for share
    ), prior as materialized (
      select id, parent_entry_id = ${p.parentEntryId}::uuid as same from mentor_conversation
      where request_id = ${p.requestId}::text and account_id = ${p.accountId}::uuid and workspace_id = ${p.workspaceId}::uuid
    ), main as materialized (
      select c.id, c.workspace_id, c.account_id, c.last_seq from mentor_conversation c join fence on fence.id = c.account_id
      where c.workspace_id = ${p.workspaceId}::uuid and c.parent_conversation_id is null for share of c
    ), parent as materialized (
      select e.id from mentor_entry e join main on main.id = e.conversation_id
      where e.id = ${p.parentEntryId}::uuid and e.erased_at is null and e.kind in ('QUESTION', 'ANSWER', 'DIGEST') and e.text is not null
    ), made as (
      insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id, request_id, forked_seq)
      select ${uuidv7<'conversation'>()}::uuid, main.workspace_id, main.account_id, main.id, parent.id, ${p.requestId}::text, main.last_seq
      from main, parent where not exists (select from prior)
      on conflict (request_id, account_id, workspace_id) where request_id is not null do nothing
      returning id
    )
    select exists (select from fence) as allowed, (select id from prior) as prior, (select same from prior) as prior_same,
      exists (select from parent) as has_parent, (select id from made) as made`);
}
