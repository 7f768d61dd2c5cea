/**
 * Owns: own questions that were not sent yet, across a reload of the tab. They come back as unsent with the same requestId, so sending
 * them again can never ask twice.
 */
import { z } from 'zod';
import { idSchema } from '../../contract/common.ts';
import { pageContextSchema, requestIdSchema } from '../../contract/web.ts';
import type { KeyValueStorage } from '../settings.ts';
import type { OutgoingQuestion } from '../store/state.ts';

const savedSchema = z
  .array(
    z.object({
      ...{ requestId: requestIdSchema, threadId: idSchema.nullable().default(null), text: z.string(), askedAt: z.string() },
      page: pageContextSchema.optional(),
    }),
  )
  .max(50);

/** Storage that is full, forbidden or damaged must not break the chat: then nothing is kept. */
export function saveOutbox(storage: KeyValueStorage, key: string, outbox: readonly OutgoingQuestion[]): void {
  try {
    if (outbox.length === 0) storage.removeItem(key);
    else storage.setItem(key, JSON.stringify(outbox.map(({ phase: _phase, reason: _reason, ...kept }) => kept)));
  } catch {
    // See above.
  }
}

/** @param reason what the person reads beside each: that the page was left before an answer came */
export function loadOutbox(storage: KeyValueStorage, key: string, reason: string): OutgoingQuestion[] {
  try {
    const saved = savedSchema.parse(JSON.parse(storage.getItem(key) ?? '[]'));
    return saved.map(({ page, ...question }) => ({ ...question, ...(page === undefined ? {} : { page }), phase: 'unsent', reason }));
  } catch {
    return [];
  }
}
