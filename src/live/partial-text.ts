/**
 * Owns: the words of one attempt so far, folded from its reports. Offsets count UTF-16 units.
 * - A newer epoch is another attempt: the words of the older one are discarded.
 * - A report that a later one has overtaken on its way from another server says nothing new, and perhaps words that were taken back since.
 * - A repeat or an overlap adds only what is new; a report beyond the known words is answered `resync`.
 * - A full report may be shorter than what readers saw (its rest follows), or say something else: then the text was rewritten, and a reader
 *   who saw the old words needs a snapshot (`rewrites` counts that).
 */
import { LIMITS } from '../contract/limits.ts';
import { wellFormed } from '../kernel/text.ts';

export interface Report {
  readonly epoch: number;
  /** UTF-16 units before `text`; null: the reporter itself does not know the words, only the stage. */
  readonly offset: number | null;
  readonly text: string;
  readonly stage: string | null;
  /** `text` is the beginning, or the whole, of all words so far. */
  readonly full: boolean;
  /** The n-th report of the attempt; absent: from an older version, which does not count. */
  readonly nth?: number | undefined;
}

export class PartialText {
  #epoch = -1;
  /** null: the beginning is not known here. */
  #text: string | null = null;
  #stage: string | null = null;
  #rewrites = 0;
  /** The last report that was taken in with its words. */
  #nth = 0;
  /** What readers may have seen beyond a shorter full report, until it is known whether that comes again. */
  #seen = '';

  get epoch(): number {
    return this.#epoch;
  }

  get stage(): string | null {
    return this.#stage;
  }

  get rewrites(): number {
    return this.#rewrites;
  }

  get nth(): number {
    return this.#nth;
  }

  /** False while only the stage is known. */
  get known(): boolean {
    return this.#text !== null;
  }

  /** Everything that may be shown: a character whose second half has not arrived is kept back. */
  get length(): number {
    const text = this.#text ?? '';
    const last = text.charCodeAt(text.length - 1);
    return last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
  }

  get bytes(): number {
    return 2 * ((this.#text?.length ?? 0) + this.#seen.length);
  }

  /** The shown words from `offset` on, normalised; offsets are kept. */
  from(offset: number): string {
    return wellFormed((this.#text ?? '').slice(offset, this.length));
  }

  /** True when reports before this one of the loop are not in the words, so that it may go on from others; the whole text is needed. */
  hasMissed({ epoch, offset, full, nth }: Report): boolean {
    return !full && epoch === this.#epoch && offset !== 0 && nth !== undefined && nth > this.#nth + 1;
  }

  take(report: Report): 'ok' | 'resync' {
    if (report.epoch < this.#epoch) return 'ok';
    if (report.epoch > this.#epoch) this.#begin(report.epoch);
    if (report.nth !== undefined && report.nth < this.#nth) return 'ok';
    this.#stage = report.stage;
    if (report.offset === null) return 'ok';
    const answer = this.#takeWords({ ...report, offset: report.offset });
    if (answer === 'ok') this.#nth = report.nth ?? this.#nth;
    return answer;
  }

  #takeWords(report: Report & { readonly offset: number }): 'ok' | 'resync' {
    if (report.full) return this.#replace(report.text);
    if (this.#text === null) return report.offset === 0 ? this.#replace(report.text) : 'resync';
    if (report.offset > this.#text.length) return this.#text.length >= LIMITS.partialMaxChars ? 'ok' : 'resync';
    return this.#continue(this.#text, report.offset, report.text);
  }

  #begin(epoch: number): void {
    this.#epoch = epoch;
    this.#text = null;
    this.#rewrites = 0;
    this.#nth = 0;
    this.#seen = '';
  }

  #continue(known: string, offset: number, words: string): 'ok' {
    const overlap = known.length - offset;
    if (overlap === 0) this.#append(words);
    else if (known.startsWith(words.slice(0, overlap), offset)) this.#append(words.slice(overlap));
    else this.#replace(known.slice(0, offset) + words);
    return 'ok';
  }

  #append(words: string): void {
    this.#text = cap((this.#text ?? '') + words);
    if (this.#seen !== '') this.#compare(this.#text);
  }

  #replace(words: string): 'ok' {
    const text = this.#text ?? '';
    this.#seen = this.#seen.length > text.length ? this.#seen : text;
    this.#text = cap(words);
    this.#compare(this.#text);
    return 'ok';
  }

  /** Whether the words can still become what readers saw. */
  #compare(text: string): void {
    const same = text.length >= this.#seen.length ? text.startsWith(this.#seen) : this.#seen.startsWith(text);
    if (!same) this.#rewrites += 1;
    if (!same || text.length >= this.#seen.length) this.#seen = '';
  }
}

function cap(text: string): string {
  return text.length > LIMITS.partialMaxChars ? text.slice(0, LIMITS.partialMaxChars) : text;
}
