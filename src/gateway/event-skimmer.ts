/**
 * Owns: passing by the bulk of a stream. Nearly every event of an answer holds a few words and nothing that has to be known here; decoding
 * each one cost five times as much CPU time as passing the bytes on. Whole events are looked at as bytes, many at once: those in which
 * nothing can matter are counted as content and go by, all others go to the decoder, in order.
 * Does not own: decoding (sse-decoder.ts), what an event means (stream-facts.ts).
 */
import type { SseDecoder } from './sse-decoder.ts';

/** The beginning of an event that is kept until its end arrives. A longer one goes to the decoder piece by piece. */
const REST_MAX_BYTES = 4 * 1024;
const NOTHING = Buffer.alloc(0);
/** How a blank line ends an event where lines end with CR. */
const CR_EVENT_ENDS = ['\r\n\r\n', '\r\r'] as const;
const CR = 0x0d;
/**
 * Whatever could make an event more than content: an end, an error, tokens, a sign of life. It errs on the side of looking: words that begin
 * with one of these are decoded for nothing. Each stands behind a quote (a key or a value of JSON), or in an event's name: asked at quotes only,
 * it costs a third of what it costs at every letter.
 */
const JSON_MAY_MATTER =
  /"(?:error|ping|keepalive|finish_reason"(?!: ?null)|usage"(?!: ?null)|message_(?:start|delta|stop)|response\.(?:completed|incomplete|failed|cancelled))/;
const NAME_MAY_MATTER =
  /(?:^|[\r\n])event: ?(?:error|ping|keepalive|message_(?:start|delta|stop)|response\.(?:completed|incomplete|failed|cancelled))/;
/** A key may be written with escapes of ASCII. */
const ESCAPED_ASCII = /\\u00[2-7]/;
/** As latin1. */
const BOM = '\u00ef';

/** Index after the last event that is complete; 0 when none is. */
function endOfEvents(bytes: Buffer): number {
  const at = bytes.lastIndexOf('\n\n', undefined, 'latin1');
  let end = at === -1 ? 0 : at + 2;
  if (!bytes.includes(CR)) return end;
  for (const mark of CR_EVENT_ENDS) {
    const crAt = bytes.lastIndexOf(mark, undefined, 'latin1');
    if (crAt !== -1) end = Math.max(end, crAt + mark.length);
  }
  return end;
}

function isPlainContent(events: Buffer): boolean {
  const text = events.toString('latin1');
  if (!text.includes('data:') || text.includes('[DONE]') || JSON_MAY_MATTER.test(text)) return false;
  const aLineBeginsWith = (mark: string) => text.startsWith(mark) || text.includes(`\n${mark}`) || text.includes(`\r${mark}`);
  if (aLineBeginsWith(':') || text.startsWith(BOM)) return false;
  if (text.includes('\\u00') && ESCAPED_ASCII.test(text)) return false;
  return !aLineBeginsWith('event') || !NAME_MAY_MATTER.test(text);
}

function isLineEnd(bytes: Buffer): boolean {
  return bytes.length <= 2 && bytes.every((byte) => byte === 0x0a || byte === 0x0d);
}

export class EventSkimmer {
  readonly #decoder: SseDecoder;
  readonly #onPlainContent: () => void;
  #rest: Buffer = NOTHING;

  /** `onPlainContent`: events have passed that held content and nothing else; called once for any number of them. */
  constructor(decoder: SseDecoder, onPlainContent: () => void) {
    this.#decoder = decoder;
    this.#onPlainContent = onPlainContent;
  }

  /** True when no event has begun. */
  get betweenEvents(): boolean {
    return this.#rest.length === 0 && this.#decoder.betweenEvents;
  }

  push(chunk: Uint8Array): void {
    const came = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const bytes = this.#rest.length === 0 ? came : Buffer.concat([this.#rest, came]);
    this.#rest = NOTHING;
    if (this.#decoder.betweenEvents) this.#skim(bytes);
    else this.#decoder.push(bytes);
  }

  /** The stream is over. */
  end(): void {
    this.#decoder.push(this.#rest);
    this.#rest = NOTHING;
    this.#decoder.end();
  }

  #skim(bytes: Buffer): void {
    const end = endOfEvents(bytes);
    if (end > 0) this.#pass(bytes.subarray(0, end));
    const rest = bytes.subarray(end);
    // The second half of a line end begins no event, and the decoder knows whether it has seen the first.
    if (rest.length > REST_MAX_BYTES || isLineEnd(rest)) this.#decoder.push(rest);
    else this.#rest = rest;
  }

  #pass(events: Buffer): void {
    if (isPlainContent(events)) this.#onPlainContent();
    else this.#decoder.push(events);
  }
}
