/**
 * Owns: where a day begins in the conversation.
 */
import type { TimelineItem } from '../store/timeline.ts';
import type { Dates } from './dates.ts';

export interface Days {
  readonly dates: Dates;
  /** Some moment of today, in milliseconds since the epoch. */
  readonly todayMs: number;
}

/** The name of the item's day when it is the first one of it. */
export function dayOf({ dates, todayMs }: Days, above: TimelineItem | undefined, item: TimelineItem): string | null {
  const sameDay = above !== undefined && dates.dayKey(above.at) === dates.dayKey(item.at);
  return sameDay ? null : dates.dayLabel(item.at, todayMs);
}
