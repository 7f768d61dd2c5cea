/**
 * Owns: new words for a question that stays where it is, in one transaction. Every summary that covers it and every search result that
 * quotes it is erased; its turn is left alone: an edit is no new question.
 * rule: R12 (the account row is held FOR SHARE; after an erasure was requested nothing is written)
 */
import { z } from 'zod';
import type { EntryId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from '../web/membership.ts';
import { type ChangedConversation, writeErased } from './erase.ts';
import { lockTrees, readWithCopies } from './trees.ts';

export interface EditRequest {
  readonly id: EntryId;
  /** Normalised (wellFormed), not blank, within the limit: the caller has checked it. */
  readonly text: string;
  readonly owner: MemberKey;
}

export type EditResult =
  /** `changed` is empty when the words were these already. */
  | { readonly kind: 'edited'; readonly changed: readonly ChangedConversation[] }
  | { readonly kind: 'no-entry' }
  | { readonly kind: 'person-erased' };

const editedRow = z.object({ same: z.boolean() });

/** Edits in the caller's transaction. */
export async function editQuestion(tx: Executor, { id, text, owner }: EditRequest): Promise<EditResult> {
  const { mainIds, mayWrite } = await lockTrees(tx, [id], owner);
  if (mainIds.length === 0) return { kind: 'no-entry' };
  if (!mayWrite) return { kind: 'person-erased' };
  const known = await tx.maybeOne(sql.prepared('ledger_edit_look', editedRow)`
    select e.text = ${text}::text as same from mentor_entry e where e.id = ${id}::uuid and e.kind = 'QUESTION' and e.erased_at is null`);
  if (!known) return { kind: 'no-entry' };
  if (known.same) return { kind: 'edited', changed: [] };
  const gone = (await readWithCopies(tx, [id], { mainIds, reach: owner })).filter(({ why }) => why === 'copy');
  const changed = await writeErased(tx, { gone, mainIds, touched: id, graceMs: 0 });
  await tx.any(sql.prepared('ledger_edit', z.object({}))`
    update mentor_entry set text = ${text}::text, search_text = ${text}::text where id = ${id}::uuid`);
  return { kind: 'edited', changed };
}
