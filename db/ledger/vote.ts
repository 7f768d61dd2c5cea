/**
 * Owns: a person's vote on an answer or a digest of their own, in one statement. The same vote again changes nothing.
 * rule: R12 (the account row is held FOR SHARE)
 */
import { z } from 'zod';
import type { ConversationId, EntryId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from '../web/membership.ts';

export interface VoteRequest {
  readonly id: EntryId;
  /** null takes the vote back. */
  readonly vote: 'up' | 'down' | null;
  readonly owner: MemberKey;
}

export type VoteResult =
  /** `version` is null when the vote was this already. */
  | { readonly kind: 'voted'; readonly conversationId: ConversationId; readonly version: number | null }
  | { readonly kind: 'no-entry' }
  | { readonly kind: 'person-erased' };

const votedRow = z.object({
  allowed: z.boolean(),
  conversation_id: z.string().nullable(),
  changes: z.boolean().nullable(),
  version: z.number().nullable(),
  written: z.boolean(),
});

export async function voteEntry(db: Executor, { id, vote, owner }: VoteRequest): Promise<VoteResult> {
  const value = vote === null ? null : vote === 'up' ? 1 : -1;
  const row = await db.one(sql.prepared('ledger_vote', votedRow)`
    with fence as materialized (
      select id from account where id = ${owner.accountId}::uuid and erasure_requested_at is null for share
    ), target as materialized (
      select e.id, e.conversation_id, e.vote is distinct from ${value}::smallint as changes
      from mentor_entry e join mentor_conversation c on c.id = e.conversation_id
      where e.id = ${id}::uuid and c.workspace_id = ${owner.workspaceId}::uuid and c.account_id = ${owner.accountId}::uuid
        and e.kind in ('ANSWER', 'DIGEST') and e.text is not null and e.erased_at is null
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from fence, target
      where c.id = target.conversation_id and target.changes
      returning c.id, c.version
    ), entry as (
      update mentor_entry e set vote = ${value}::smallint from conv, target
      where e.id = target.id and conv.id = target.conversation_id and e.erased_at is null
      returning e.id
    )
    select exists (select 1 from fence) as allowed, (select conversation_id from target) as conversation_id,
      (select changes from target) as changes, (select version from conv) as version, exists (select 1 from entry) as written`);
  if (!row.allowed) return { kind: 'person-erased' };
  if (row.conversation_id === null || (row.changes && !row.written)) return { kind: 'no-entry' };
  return { kind: 'voted', conversationId: row.conversation_id as ConversationId, version: row.version };
}
