/**
 * Owns: documents as text, and cutting them to their size. A cut is made by the whole item or by the code point, and always said.
 */
import { codePoints, cutText } from '../kernel/text.ts';

type Content = Readonly<Record<string, unknown>>;

/** JSON with indentation and a last line end: what the model reads. */
export function documentText(content: Content): string {
  return `${JSON.stringify(content, null, 2)}\n`;
}

export function documentBytes(content: Content): number {
  return Buffer.byteLength(documentText(content));
}

/** The largest count from 0 to `most` for which `fits`; 0 when none does. `fits` must not turn true again. */
function largest(most: number, fits: (count: number) => boolean): number {
  let [low, high] = [0, most];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** As many of the first items as fit into `maxBytes`. `build` gets them, and how many it must say are left out. */
export function fitItems<T>(items: readonly T[], maxBytes: number, build: (kept: readonly T[], omitted: number) => Content): Content {
  const of = (count: number) => build(items.slice(0, count), items.length - count);
  return of(largest(items.length, (count) => documentBytes(of(count)) <= maxBytes));
}

/** As much of the beginning of `text` as fits. `build` gets it, and whether it must say that the rest is left out. */
export function fitText(text: string, maxBytes: number, build: (kept: string, truncated: boolean) => Content): Content {
  const whole = build(text, false);
  if (documentBytes(whole) <= maxBytes) return whole;
  const of = (count: number) => build(cutText(text, count), true);
  return of(largest(codePoints(text) - 1, (count) => documentBytes(of(count)) <= maxBytes));
}
