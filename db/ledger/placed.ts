/**
 * Owns: what becomes of pulls that claim.ts left for other servers (ADR 14): those that another server gave a claim, and those of servers that
 * are gone.
 */
import { z } from 'zod';
import type { ConversationId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { Offer } from './claim.ts';

const placedRow = z.object({ conversation_id: z.string() });

/**
 * Of `offers`, the conversations whose sandbox holds a claim and has made no call of it. The change feed tells it at once; this read is for a
 * word that was lost.
 */
export async function findPlaced(db: Executor, offers: readonly Offer[]): Promise<readonly ConversationId[]> {
  const conversations = offers.map((offer) => offer.conversationId);
  const sandboxes = offers.map((offer) => offer.sandboxId);
  const rows = await db.any(sql.prepared('ledger_find_placed', placedRow)`
    select o.conversation_id from unnest(${sql.array(conversations, 'uuid')}, ${sql.array(sandboxes, 'uuid')}) as o(conversation_id, sandbox_id)
    join agent_run r on r.conversation_id = o.conversation_id and r.sandbox_id = o.sandbox_id
    where r.state = 'LEASED' and r.called_at is null`);
  return rows.map((row) => row.conversation_id as ConversationId);
}

/** Deletes the rows of servers that ask no more. A living one writes its row again with its next claim. */
export async function forgetPulls(db: Executor): Promise<void> {
  await db.any(sql.prepared('ledger_forget_pulls', z.object({ host_id: z.string() }))`
    delete from waiting_pull where open_until < clock_timestamp() returning host_id`);
}
