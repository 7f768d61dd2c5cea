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
/** How a blank line ends an event, on the three kinds of line ends. */
const EVENT_ENDS = ['\n\n', '\r\n\r\n', '\r\r'] as const;
/**
 * Whatever could make an event more than content: an end, an error, tokens, a sign of life, a comment. It errs on the side of looking:
 * words that contain one of these are decoded for nothing. A key may be written with escapes, so escapes of ASCII count too.
 */
const MAY_MATTER =
  /\[DONE\]|error|ping|keepalive|"finish_reason"(?!: ?null)|"usage"(?!: ?null)|message_(?:start|delta|stop)|response\.(?:completed|incomplete|failed|cancelled)|\\u00[2-7]|(?:^|[\r\n]):/;

/** Index after the last event that is complete; 0 when none is. */
function endOfEvents(bytes: Buffer): number {
  let end = 0;
  for (const mark of EVENT_ENDS) {
    const at = bytes.lastIndexOf(mark, undefined, 'latin1');
    if (at !== -1) end = Math.max(end, at + mark.length);
  }
  return end;
}

function isPlainContent(events: Buffer): boolean {
  const text = events.toString('latin1');
  return text.includes('data:') && !MAY_MATTER.test(text);
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
