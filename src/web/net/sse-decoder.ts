/**
 * Owns: bytes -> server-sent events (WHATWG HTML, section 9.2), cut at any byte: inside a character, between CR and LF, inside a field.
 * Does not own: the connection (event-stream.ts), or what an event means.
 * Only CR, LF and CRLF end a line: U+2028, NEL and the like are data. Text such as `[DONE]` or `data: x` inside data means nothing.
 */
export interface SseFrame {
  event: string;
  data: string;
}

/** One event may not be larger than this: a stream that never ends a line must not fill the memory. In UTF-16 units. */
const frameMaxChars = 16_000_000;

export class SseDecoder {
  // Strips a leading byte order mark, also when it arrives in pieces.
  readonly #utf8 = new TextDecoder('utf-8');
  #line = '';
  #afterCr = false;
  #event = '';
  #data: string[] = [];
  #dataChars = 0;

  /** The events that these bytes complete. Throws when one grows beyond the limit. */
  push(bytes: Uint8Array): SseFrame[] {
    const frames: SseFrame[] = [];
    let text = this.#utf8.decode(bytes, { stream: true });
    // A chunk may decode to nothing (half a character): then the CR is still the last thing seen.
    if (text !== '') {
      const secondHalf = this.#afterCr && text.startsWith('\n');
      this.#afterCr = text.endsWith('\r');
      if (secondHalf) text = text.slice(1);
    }
    const lines = text.split(/\r\n|\r|\n/);
    const rest = lines.pop() ?? '';
    for (const line of lines) {
      this.#takeLine(this.#line + line, frames);
      this.#line = '';
    }
    this.#line += rest;
    if (this.#line.length + this.#dataChars > frameMaxChars) throw new Error('an event of the stream is too large');
    return frames;
  }

  #takeLine(line: string, frames: SseFrame[]): void {
    if (line === '') {
      this.#dispatch(frames);
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'event') this.#event = value;
    if (name === 'data') {
      this.#data.push(value);
      this.#dataChars += value.length + 1;
    }
  }

  #dispatch(frames: SseFrame[]): void {
    if (this.#data.length > 0) frames.push({ event: this.#event || 'message', data: this.#data.join('\n') });
    this.#event = '';
    this.#data = [];
    this.#dataChars = 0;
  }
}
