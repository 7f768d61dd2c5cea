/**
 * Owns: one message from a text of any length: cut on a block boundary where one is near, else on a line, else between two code points; fences
 * are closed, and a note says where the rest is.
 */
import { codePoints, cutText } from '../kernel/text.ts';
import { type Block, blocksOf, renderBlock } from './mrkdwn.ts';

/** Code points of one message, its note included. Slack itself cuts far above. */
export const MESSAGE_MAX_CHARS = 8_000;
/** A block that starts with less room than this is left out as a whole. */
const WORTH_CUTTING_CHARS = 1_000;
const BETWEEN = '\n\n';

/** The message, with `note` at its end when something was left out. */
export function fitMessage(markdown: string, note: string, maxChars: number = MESSAGE_MAX_CHARS): string {
  const blocks = blocksOf(markdown);
  const whole = blocks.map(renderBlock).join(BETWEEN);
  if (codePoints(whole) <= maxChars) return whole;
  let room = maxChars - codePoints(BETWEEN + note);
  const kept: string[] = [];
  for (const block of blocks) {
    const space = room - (kept.length === 0 ? 0 : BETWEEN.length);
    const rendered = renderBlock(block);
    const part =
      codePoints(rendered) <= space ? rendered : space >= WORTH_CUTTING_CHARS || kept.length === 0 ? cutBlock(block, space) : null;
    if (part !== null && part !== '') kept.push(part);
    if (part !== rendered) break;
    room = space - codePoints(rendered);
  }
  return [...kept, note].join(BETWEEN);
}

/** As many of its lines as fit; of a first line that is too long, as many code points. */
function cutBlock(block: Block, room: number): string {
  const fits = (lines: readonly string[]) => codePoints(renderBlock({ ...block, lines })) <= room;
  const count = largest(block.lines.length, (n) => fits(block.lines.slice(0, n)));
  if (count > 0) return renderBlock({ ...block, lines: block.lines.slice(0, count) });
  const line = block.lines[0] ?? '';
  const chars = largest(room, (n) => fits([cutText(line, n)]));
  return chars === 0 ? '' : renderBlock({ ...block, lines: [cutText(line, chars)] });
}

/** The largest n up to `max` that fits, given that fewer fit when more do. 0: not even 1. */
function largest(max: number, fits: (n: number) => boolean): number {
  let [low, high] = [0, max];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
