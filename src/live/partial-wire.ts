/**
 * Owns: partial answers as payloads of NOTIFY: words in pieces below the limit in bytes, escaped as JSON, never cut inside a character.
 */
import { z } from 'zod';
import { type Message, PAYLOAD_MAX_BYTES, utf8Bytes } from '../../db/live/payloads.ts';
import { parse } from './change-wire.ts';
import type { PartialText, Report } from './partial-text.ts';

export const PARTIAL_CHANNEL = 'heph_partial';

/** Short names: most of a payload should be words. */
const partialLetterSchema = z.object({
  /** Server. */
  s: z.string(),
  w: z.string(),
  a: z.string(),
  c: z.string(),
  t: z.string(),
  /** Epoch; null: an attempt is over, and its words go. */
  e: z.number().int().nullable(),
  /** With `e` null: attempts up to this epoch are over; null: the turn is. Absent: a server of an older version did not say which. */
  u: z.number().int().nullable().optional(),
  /** Offset; null: only the stage is known. */
  o: z.number().int().nullable(),
  /** Words. */
  x: z.string(),
  /** Stage. */
  g: z.string().nullable(),
  /** The words begin anew: what was known of this attempt is replaced. */
  f: z.boolean().optional(),
  /** The last report of the loop that is in the words; absent: from an older version. */
  n: z.number().int().optional(),
});
export type PartialLetter = z.infer<typeof partialLetterSchema>;

/** Messages that carry `letter`, its words cut into pieces with rising offsets. Only the first piece may begin anew. */
export function packPartial(letter: PartialLetter): readonly Message[] {
  const room = PAYLOAD_MAX_BYTES - utf8Bytes(JSON.stringify({ ...letter, o: Number.MAX_SAFE_INTEGER, x: '' }));
  const messages: Message[] = [];
  let at = 0;
  do {
    const end = fitJson(letter.x, at, room);
    const { f, ...rest } = letter;
    const piece = { ...rest, o: letter.o === null ? null : letter.o + at, x: letter.x.slice(at, end), ...(f && at === 0 ? { f } : {}) };
    messages.push({ channel: PARTIAL_CHANNEL, payload: JSON.stringify(piece) });
    at = end;
  } while (at < letter.x.length);
  return messages;
}

/** How far a slice of `text` from `start` may go so that its JSON takes at most `maxBytes`. At least one character. */
function fitJson(text: string, start: number, maxBytes: number): number {
  let bytes = 0;
  let end = start;
  while (end < text.length) {
    const point = text.codePointAt(end) as number;
    bytes += jsonBytes(point);
    if (bytes > maxBytes && end > start) return end;
    end += point > 0xffff ? 2 : 1;
  }
  return end;
}

/** Bytes of one code point inside a JSON string. A lone surrogate is escaped. */
function jsonBytes(point: number): number {
  if (point === 0x22 || point === 0x5c) return 2;
  if (point < 0x20) return 6;
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  if (point >= 0xd800 && point <= 0xdfff) return 6;
  return point > 0xffff ? 4 : 3;
}

const helloSchema = z.object({ s: z.string(), hello: z.literal(true) });

/** "I may have missed words": whoever hears it says everything again that it has to say. */
export function packHello(ownServer: string): Message {
  return { channel: PARTIAL_CHANNEL, payload: JSON.stringify({ s: ownServer, hello: true } satisfies z.infer<typeof helloSchema>) };
}

/** True when another server may have missed words. */
export function isHello(payload: string, ownServer: string): boolean {
  const hello = helloSchema.safeParse(parse(payload));
  return hello.success && hello.data.s !== ownServer;
}

/** What another server wrote; null when it is our own echo or cannot be read. */
export function unpackPartial(payload: string, ownServer: string): PartialLetter | null {
  const letter = partialLetterSchema.safeParse(parse(payload));
  return letter.success && letter.data.s !== ownServer ? letter.data : null;
}

/** A letter with words, which is what `receive` folds. */
type WordsLetter = PartialLetter & { readonly e: number };

/** What a letter reports to who knows `words`. One that begins at the beginning, after a later report, replaces what is known. */
export function toReport(letter: WordsLetter, words: Pick<PartialText, 'epoch' | 'nth'>): Report {
  const { e: epoch, o: offset, x: text, g: stage, n: nth } = letter;
  const anew = offset === 0 && words.epoch === epoch && nth !== undefined && nth > words.nth;
  return { epoch, offset, text, stage, full: letter.f === true || anew, nth };
}

/** True when its server knows more than `words`, or as much and comes later in the order of servers: then it is the one to tell the others. */
export function saysMore(letter: WordsLetter, words: Pick<PartialText, 'epoch' | 'nth' | 'length'>, ownServer: string): boolean {
  if (letter.e !== words.epoch) return letter.e > words.epoch;
  const nth = letter.n ?? words.nth;
  if (nth !== words.nth) return nth > words.nth;
  const told = (letter.o ?? -1) + letter.x.length;
  return told > words.length || (told === words.length && letter.s > ownServer);
}
