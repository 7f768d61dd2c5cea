/**
 * Owns: the read marker of a conversation, main or thread. It moves forward only, and never into the future of the database clock: nobody has read
 * what is not written yet, and a client's clock may be wrong. rule: R12 (the account row is held FOR SHARE)  rule: R8
 * rule: R16 (the owner is in the statement)
 */
import { z } from 'zod';
import type { ConversationId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from './membership.ts';

/** `version` is null when the marker stood there already, or further. */
export type MoveReadResult =
  | { readonly kind: 'read'; readonly conversationId: ConversationId; readonly version: number | null }
  | { readonly kind: 'no-conversation' }
  | { readonly kind: 'erased' };

const movedRow = z.object({ allowed: z.boolean(), id: z.string().nullable(), version: z.number().nullable() });

export interface ReadMove {
  /** null: the member's main conversation. */
  readonly conversationId: ConversationId | null;
  /** ISO 8601. An earlier time changes nothing. */
  readonly lastReadAt: string;
}

export async function moveRead(db: Executor, member: MemberKey, { conversationId, lastReadAt }: ReadMove): Promise<MoveReadResult> {
  const row = await db.one(sql.prepared('web_move_read', movedRow)`
    with fence as materialized (
      select id from account where id = ${member.accountId} and erasure_requested_at is null for share
    ), meant as materialized (
      select id from mentor_conversation
      where workspace_id = ${member.workspaceId} and account_id = ${member.accountId} and parent_conversation_id is null
        and ${conversationId}::uuid is null
      union all
      select id from mentor_conversation
      where id = ${conversationId}::uuid and workspace_id = ${member.workspaceId} and account_id = ${member.accountId}
    ), moved as (
      update mentor_conversation c set version = c.version + 1, last_read_at = least(${lastReadAt}::timestamptz, clock_timestamp())
      from fence, meant
      where c.id = meant.id and (c.last_read_at is null or c.last_read_at < least(${lastReadAt}::timestamptz, clock_timestamp()))
      returning c.version
    )
    select exists (select 1 from fence) as allowed, (select id from meant) as id, (select version from moved) as version`);
  if (!row.allowed) return { kind: 'erased' };
  if (row.id === null) return { kind: 'no-conversation' };
  return { kind: 'read', conversationId: row.id as ConversationId, version: row.version };
}
