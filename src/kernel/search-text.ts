/**
 * Owns: what a person means by the words of a search, and the piece of a text around them. Pure.
 * Does not own: which entries match, and where a word ends for the index (mentor_search_words in db/migrations).
 */
import { cutText, wellFormed } from './text.ts';

/** The parts of a query. A part of several words stands together. */
export interface SearchTerms {
  /** The whole query as it was typed, for a search that looks for exactly this. */
  readonly typed: string;
  readonly wanted: readonly { readonly text: string /** It may be the beginning of a longer word. */; readonly open: boolean }[];
  readonly unwanted: readonly string[];
}

/** `"words in quotes"`, a quote that never closes, or a word; each may follow a minus sign. */
const PART = /(-?)(?:"([^"]*)("?)|(\S+))/gu;
/** The beginning of a word, from which it makes sense to guess the rest. */
const OPEN_END = /[\p{L}\p{N}\p{M}]{2}$/u;

/** Reads a query as it was typed. The last word may still be being typed: it is taken as the beginning of one. */
export function parseSearch(query: string): SearchTerms {
  const typed = wellFormed(query).trim();
  const parts = [...typed.matchAll(PART)].map(([whole, minus, quoted, closed, word]) => {
    const excluded = minus === '-' && (quoted ?? word) !== undefined;
    return { text: quoted ?? word ?? whole, excluded, quoted: quoted !== undefined && closed === '"' };
  });
  const last = parts.at(-1);
  const wanted = parts.filter(({ excluded }) => !excluded);
  return {
    typed,
    wanted: wanted.map((part) => ({ text: part.text, open: part === last && !part.quoted && OPEN_END.test(part.text) })),
    unwanted: parts.filter(({ excluded }) => excluded).map(({ text }) => text),
  };
}

/** A part of `excerpt`, in UTF-16 units. */
export interface Match {
  readonly start: number;
  readonly end: number;
}

export interface Excerpt {
  readonly excerpt: string;
  /** In order, apart from each other. */
  readonly matches: readonly Match[];
}

/** Scripts that are written without spaces: a match may begin anywhere. */
const NO_SPACES = /^[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
const BEFORE_MATCH_CHARS = 80;

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);

/** Where the parts stand in a text. */
function patternOf(terms: readonly string[], anywhere: boolean): RegExp | null {
  const alternatives = terms.flatMap((term) => {
    const words = term.match(/[\p{L}\p{N}\p{M}]+/gu);
    const body = words ? words.map(escaped).join(String.raw`[^\p{L}\p{N}]{1,8}`) : escaped(term.trim());
    if (body === '') return [];
    return [anywhere || !words || NO_SPACES.test(words[0] ?? '') ? body : String.raw`(?<![\p{L}\p{N}])${body}`];
  });
  if (alternatives.length === 0) return null;
  return new RegExp(alternatives.sort((a, b) => b.length - a.length).join('|'), 'giu');
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Up to `chars` code points before `at`, and from there to the beginning of a word when one is near. */
function startBefore(text: string, at: number, chars: number): number {
  let start = at;
  for (let count = 0; count < chars && start > 0; count++) start -= start > 1 && isLowSurrogate(text, start - 1) ? 2 : 1;
  if (start === 0) return 0;
  const space = text.slice(start, at).search(/\s/u);
  return space < 0 || space > BEFORE_MATCH_CHARS / 4 ? start : start + space + 1;
}

/**
 * The piece of `text` around the first match of `terms`, its head where there is none. What is cut off is shown as `…`.
 * @param maxChars code points, the marks included; at least 3
 */
export function excerptOf(text: string, terms: readonly string[], maxChars: number): Excerpt {
  const found = [false, true].map((anywhere) => patternOf(terms, anywhere)).find((pattern) => pattern && text.search(pattern) >= 0) ?? null;
  const first = found ? text.search(found) : 0;
  const start = startBefore(text, first, Math.min(BEFORE_MATCH_CHARS, Math.floor(maxChars / 3)));
  const head = start === 0 ? '' : '…';
  const rest = text.slice(start);
  const whole = cutText(rest, maxChars - head.length);
  const body = whole.length === rest.length ? whole : `${cutText(rest, maxChars - head.length - 1)}…`;
  const excerpt = head + body;
  const cut = found ? [...excerpt.matchAll(found)] : [];
  return { excerpt, matches: cut.map(({ index, 0: words }) => ({ start: index, end: index + words.length })) };
}
