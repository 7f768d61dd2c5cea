/**
 * Owns: keeping the objects of items that say the same as before: what is read again after each snapshot is new in every part.
 */
import type { TimelineItem } from './timeline.ts';

/** Whether two plain values say the same. */
export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]));
}

/** `next` with the objects of `previous` wherever an item did not change, so that only changed messages are drawn again. */
export function keepUnchanged(previous: readonly TimelineItem[], next: readonly TimelineItem[]): readonly TimelineItem[] {
  const byId = new Map(previous.map((item) => [item.id, item]));
  const kept = next.map((item) => {
    const old = byId.get(item.id);
    return old !== undefined && same(old, item) ? old : item;
  });
  const identical = kept.length === previous.length && kept.every((item, index) => item === previous[index]);
  return identical ? previous : kept;
}
