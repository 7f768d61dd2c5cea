/**
 * Owns: what servers tell each other (and themselves) after a commit: which rows changed, never their words.
 * A change is a hint. Whoever misses one finds it by `version` in the catch-up sweep (DESIGN section 5).
 */
import { z } from 'zod';
import { idSchema } from './common.ts';

export const changeSchema = z.object({
  workspaceId: idSchema,
  conversationId: idSchema,
  accountId: idSchema,
  /** The conversation's version after the commit. */
  version: z.number().int(),
  /** The version before this change, when it tells of more than one step; else `version - 1`. Whoever sees a hole asks the rows. */
  since: z.number().int().optional(),
  /** Turns whose DTO changed. */
  turnIds: z.array(idSchema),
  /** Shown entries (question, answer, digest) that were added or changed. */
  entryIds: z.array(idSchema),
  /** Runs whose claim changed (stopped, ended, taken back): each server seals their model calls in flight. */
  sealedRunIds: z.array(idSchema),
  /** The read marker moved. */
  read: z.boolean().optional(),
  /** Slots were taken or freed: turns that wait for one may have a new position, and parked pulls may be served. */
  slots: z.boolean().optional(),
});
export type Change = z.infer<typeof changeSchema>;
