/**
 * Owns: reading server-sent events from bytes that arrive in any pieces: LF, CRLF and CR line ends, data over several lines, `data:x`
 * without a space, cuts inside a character or between CR and LF, a byte order mark. It keeps bytes, so no character is ever decoded in half.
 * Does not own: what an event means (stream-facts.ts), or the bytes themselves: the relay passes those on untouched.
 */
const LF = 0x0a;
const CR = 0x0d;
const BOM = '\uFEFF';

export interface SseEvent {
  /** Value of the `event` field; empty when there was none. */
  readonly name: string;
  readonly data: string;
}

export class SseDecoder {
  readonly #onEvent: (event: SseEvent) => void;
  readonly #eventMaxBytes: number;
  /** Pieces of the line that is not complete yet, and its length with what was too much to keep. */
  #line: Uint8Array[] = [];
  #lineBytes = 0;
  #name = '';
  #data: string[] = [];
  #eventBytes = 0;
  #afterCr = false;
  #first = true;

  /** An event of more than `eventMaxBytes` is skipped; the decoder keeps no more than that. */
  constructor(onEvent: (event: SseEvent) => void, eventMaxBytes: number) {
    this.#onEvent = onEvent;
    this.#eventMaxBytes = eventMaxBytes;
  }

  /** True when no event has begun: whatever a writer adds now starts a new one. */
  get betweenEvents(): boolean {
    return this.#eventBytes === 0;
  }

  push(chunk: Uint8Array): void {
    let from = this.#afterCr && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) this.#afterCr = false;
    let cr = chunk.indexOf(CR, from);
    let lf = chunk.indexOf(LF, from);
    while (cr !== -1 || lf !== -1) {
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr;
      this.#keep(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
      if (end === cr && from === chunk.length) this.#afterCr = true;
      if (end === cr && chunk[from] === LF) from += 1;
      if (cr !== -1 && cr < from) cr = chunk.indexOf(CR, from);
      if (lf !== -1 && lf < from) lf = chunk.indexOf(LF, from);
    }
    this.#keep(chunk.subarray(from));
  }

  /** The stream is over. An event whose blank line is missing counts, since some clients read it. */
  end(): void {
    if (this.#lineBytes > 0) this.#endLine();
    this.#dispatch();
  }

  #keep(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#lineBytes += piece.length;
    this.#eventBytes += piece.length;
    if (!this.#oversized) this.#line.push(piece);
  }

  get #oversized(): boolean {
    return this.#eventBytes > this.#eventMaxBytes;
  }

  #endLine(): void {
    const blank = this.#lineBytes === 0;
    const text = Buffer.concat(this.#line).toString('utf8');
    const line = this.#first && text.startsWith(BOM) ? text.slice(BOM.length) : text;
    this.#first = false;
    this.#line = [];
    this.#lineBytes = 0;
    if (blank) this.#dispatch();
    else this.#field(line);
  }

  #field(line: string): void {
    const colon = line.indexOf(':');
    if (colon === 0) {
      if (this.#data.length === 0 && this.#name === '' && !this.#oversized) this.#eventBytes = 0;
      return;
    }
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') this.#name = value;
    else if (field === 'data' && !this.#oversized) this.#data.push(value);
  }

  #dispatch(): void {
    const complete = this.#data.length > 0 && !this.#oversized;
    const event = { name: this.#name, data: this.#data.join('\n') };
    this.#name = '';
    this.#data = [];
    this.#eventBytes = 0;
    if (complete) this.#onEvent(event);
  }
}
