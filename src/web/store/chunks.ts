/**
 * Owns: cutting a long conversation into pieces that the page can leave out while they are far away.
 * A piece keeps its first message, whatever is added above or below it, so that a piece in sight is never taken apart.
 * Does not own: which pieces are drawn (ui/Chunk.tsx).
 */

interface Identified {
  readonly id: string;
}

export interface Chunk<T extends Identified> {
  /** The id of the first item. */
  readonly key: string;
  readonly items: readonly T[];
}

/** Messages of one piece. The last one grows to twice as many before another begins. */
export const chunkSize = 20;

function startsOf<T extends Identified>(items: readonly T[], previous: readonly Chunk<T>[]): number[] {
  const known = new Set(previous.map(({ key }) => key));
  const starts = items.flatMap(({ id }, index) => (known.has(id) ? [index] : []));
  const first = starts[0] ?? items.length;
  // From the first known piece upwards, so that a page of older messages never touches it.
  for (let start = first; start > 0; start -= chunkSize) starts.unshift(Math.max(0, start - chunkSize));
  // Below the last piece, and where messages came between two of them.
  return starts.flatMap((start, index) => {
    const pieces = [start];
    for (let last = start; (starts[index + 1] ?? items.length) - last >= 2 * chunkSize; last += chunkSize) pieces.push(last + chunkSize);
    return pieces;
  });
}

/** The items in pieces. A piece whose items did not change is the object that it was. */
export function chunked<T extends Identified>(items: readonly T[], previous: readonly Chunk<T>[]): readonly Chunk<T>[] {
  const byKey = new Map(previous.map((chunk) => [chunk.key, chunk]));
  const starts = startsOf(items, previous);
  return starts.map((start, index) => {
    const slice = items.slice(start, starts[index + 1] ?? items.length);
    const key = slice[0]?.id ?? '';
    const known = byKey.get(key);
    const unchanged = known !== undefined && known.items.length === slice.length && known.items.every((item, at) => item === slice[at]);
    return unchanged ? known : { key, items: slice };
  });
}
