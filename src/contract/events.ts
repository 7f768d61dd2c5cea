/**
 * Owns: what the event stream `GET events` sends (DESIGN section 6, seed "Live updates").
 * There is no replay log: each connection starts with a snapshot and a gap is cured by a snapshot.
 */
import { z } from 'zod';
import { idSchema, timeSchema } from './common.ts';
import { conversationSchema, entrySchema, turnSchema } from './web.ts';

/** A part of an answer that is being written. `offset` counts UTF-16 units of the text before `text`. */
export const partialSchema = z.object({
  conversationId: idSchema,
  turnId: idSchema,
  /** The attempt: a partial of an older epoch is dropped. */
  epoch: z.number().int(),
  offset: z.number().int(),
  text: z.string(),
  stage: z.string().nullable(),
});
export type Partial = z.infer<typeof partialSchema>;

export const snapshotSchema = z.object({
  /** The account's conversations that are open: the main one first; empty before the first question. */
  conversations: z.array(conversationSchema),
  /** What has been written of each running turn so far (offset 0). */
  partials: z.array(partialSchema),
});
export type Snapshot = z.infer<typeof snapshotSchema>;

export const readSchema = z.object({ conversationId: idSchema, lastReadAt: timeSchema.nullable() });

/** Event name -> data. */
export const STREAM_EVENTS = {
  snapshot: snapshotSchema,
  turn: turnSchema,
  entry: entrySchema,
  partial: partialSchema,
  read: readSchema,
} as const;
export type StreamEventName = keyof typeof STREAM_EVENTS;
export type StreamEvent = { [K in StreamEventName]: { event: K; data: z.infer<(typeof STREAM_EVENTS)[K]> } }[StreamEventName];
