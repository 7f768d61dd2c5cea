/**
 * Owns: which answers are new to the person (seed "Live updates": those after the read marker), and where the page marks the first of them.
 * Does not own: moving the marker (chat/controller.ts), or whether somebody looks (ui/use-reading.ts).
 * - The marker is the account's, so that what was read on one device is read on all.
 * - A visit keeps its mark while the person reads on; answers that come before their eyes get none.
 */
import type { AnswerItem, TimelineItem } from './timeline.ts';

export interface Unread {
  count: number;
  /** When the newest stored answer came, read or not; null when there is none. */
  newestAt: string | null;
  /** When the newest question was asked; null when there is none. */
  askedAt: string | null;
}

/** The answers that were new when the person came: after `since`, up to `until`. */
export interface Visit {
  since: string | null;
  until: string;
}

/** Whether time `a` is after `b`. Nothing is a time before all others. */
export function isAfter(a: string, b: string | null): boolean {
  return b === null || Date.parse(a) > Date.parse(b);
}

function isStored(item: TimelineItem): item is AnswerItem {
  return item.kind === 'answer' && item.entryId !== null && !item.erased;
}

export function unreadIn(items: readonly TimelineItem[], lastReadAt: string | null): Unread {
  let newestAt: string | null = null;
  let count = 0;
  for (const item of items.filter(isStored)) {
    if (isAfter(item.at, newestAt)) newestAt = item.at;
    if (isAfter(item.at, lastReadAt)) count += 1;
  }
  return { count, newestAt, askedAt: items.findLast((item) => item.kind === 'question')?.at ?? null };
}

/**
 * The visit after something changed.
 * @param reading the person looks at the end of the conversation: what comes now is read as it comes
 */
export function nextVisit(visit: Visit | null, unread: Unread, now: { reading: boolean; lastReadAt: string | null }): Visit | null {
  const { count, newestAt, askedAt } = unread;
  // Who asks has read what is above.
  const wentOn = visit !== null && now.reading && askedAt !== null && isAfter(askedAt, visit.until);
  if (wentOn) return null;
  if (now.reading || count === 0 || newestAt === null) return visit;
  const same = visit !== null && visit.since === now.lastReadAt && visit.until === newestAt;
  return same ? visit : { since: now.lastReadAt, until: newestAt };
}

/** The id of the item above which the visit's mark stands; null: nothing was new. */
export function markedItem(items: readonly TimelineItem[], visit: Visit | null): string | null {
  if (visit === null) return null;
  const first = items.find((item) => isStored(item) && isAfter(item.at, visit.since) && !isAfter(item.at, visit.until));
  return first?.id ?? null;
}
