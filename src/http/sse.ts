/**
 * Owns: server-sent events on one response, with back pressure. Frames are written one at a time; the rest waits in a queue that is bounded in
 * events and bytes. What is sent to many readers is made into a frame once: each gets the same bytes.
 * Only the frame writer of koa-sse-stream is used, by deep import, and one for all readers: a stream of its own, and Koa's pipe behind it, held
 * some kilobytes and cost four writes for each reader and event.
 * Data is always JSON: it has no line break, and it begins with a brace, which the writer cannot take for a comment.
 */
import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Transform } from 'node:stream';
import type Koa from 'koa';
import type { StreamEventName } from '../contract/events.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Clock } from '../kernel/clock.ts';
import type { EventSink } from './ports.ts';

type Frame = { readonly event: string; readonly data: string } | { readonly retry: number; readonly data: string } | string;
const FrameWriter = createRequire(import.meta.url)('koa-sse-stream/lib/sse') as new (ctx: object) => Transform;

/** The class prepares the response of its reader; ours has none. */
const nothing = () => {};
const writer = new FrameWriter({ set: nothing, req: { socket: { setTimeout: nothing, setNoDelay: nothing, setKeepAlive: nothing } } });

/** The bytes of a frame: the class frames at once what it is given. */
function bytesOf(frame: Frame): Buffer {
  writer.write(frame);
  return takeWritten();
}

function takeWritten(): Buffer {
  return writer.read() as Buffer;
}

/** A first comment, so that a reader knows that the stream is open. */
const GREETING = takeWritten();
/** No proxy may keep, change or gather what is sent. */
export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

const COMMENT = ':';
const PING = bytesOf(COMMENT);

/** The frame that was made last: readers of one event are served one after the other. */
let last = { event: '', json: '', bytes: GREETING };

function eventBytes(event: StreamEventName, json: string): Buffer {
  if (last.json !== json || last.event !== event) last = { event, json, bytes: bytesOf({ event, data: json }) };
  return last.bytes;
}

const QUEUE_MAX_BYTES = 1024 * 1024;
/** A reader who does not take the goodbye is cut after this time. */
const GOODBYE_MS = 2_000;

export class SseChannel implements EventSink {
  readonly #clock: Clock;
  readonly #response: ServerResponse;
  readonly #queue: Buffer[] = [];
  readonly #drainListeners: (() => void)[] = [];
  readonly #closeListeners: (() => void)[] = [];
  #queuedBytes = 0;
  #writing = false;
  #writingSinceMs = 0;
  /** The queue was dropped: nothing is taken until the reader has everything that was written. */
  #refusing = false;
  #ending = false;
  #closed = false;

  /** Answers the request with a stream that stays open. */
  constructor(ctx: Koa.Context, clock: Clock) {
    this.#clock = clock;
    this.#response = ctx.res;
    ctx.req.socket.setTimeout(0);
    ctx.req.socket.setKeepAlive(true);
    ctx.respond = false;
    ctx.status = 200;
    ctx.set(STREAM_HEADERS);
    ctx.res.once('close', () => this.#gone());
    ctx.res.on('error', () => this.destroy());
    if (ctx.res.destroyed || ctx.req.socket.destroyed) this.destroy();
    else this.#push(GREETING);
  }

  get idle(): boolean {
    return !this.#writing && this.#queue.length === 0;
  }

  get stalledMs(): number {
    return this.#writing ? this.#clock.monotonicMs() - this.#writingSinceMs : 0;
  }

  /** Bytes in memory for this reader: the queue, and what the connection holds. */
  get bufferedBytes(): number {
    return this.#queuedBytes + this.#response.writableLength;
  }

  send(event: StreamEventName, json: string): boolean {
    if (this.#closed || this.#ending || this.#refusing) return false;
    const bytes = eventBytes(event, json);
    const full = this.#queue.length >= LIMITS.streamQueueMaxEvents || this.#queuedBytes + bytes.length > QUEUE_MAX_BYTES;
    if (!this.idle && full) {
      this.#dropQueue();
      this.#refusing = true;
      return false;
    }
    this.#push(bytes);
    return true;
  }

  ping(): void {
    if (this.idle && !this.#closed) this.#push(PING);
  }

  end(retryMs?: number): void {
    if (this.#closed || this.#ending) return;
    this.#ending = true;
    if (retryMs !== undefined) this.#push(bytesOf({ retry: retryMs, data: COMMENT }));
    this.#flush();
    this.#clock.after(GOODBYE_MS, () => this.destroy());
  }

  destroy(): void {
    if (this.#closed) return;
    this.#gone();
    this.#response.destroy();
  }

  onDrain(listener: () => void): void {
    this.#drainListeners.push(listener);
  }

  onClose(listener: () => void): void {
    if (this.#closed) listener();
    else this.#closeListeners.push(listener);
  }

  #gone(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#dropQueue();
    for (const listener of this.#closeListeners.splice(0)) listener();
  }

  #push(bytes: Buffer): void {
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    this.#flush();
  }

  #dropQueue(): void {
    this.#queue.length = 0;
    this.#queuedBytes = 0;
  }

  /** Writes the next frame. Its callback comes when the connection has passed it on, which it does only while the reader reads. */
  #flush(): void {
    if (this.#writing || this.#closed) return;
    const next = this.#queue.shift();
    if (!next) {
      this.#drained();
      return;
    }
    this.#queuedBytes -= next.length;
    this.#writing = true;
    this.#writingSinceMs = this.#clock.monotonicMs();
    this.#response.write(next, this.#written);
  }

  readonly #written = (error: Error | null | undefined): void => {
    this.#writing = false;
    if (!error) this.#flush();
  };

  #drained(): void {
    if (this.#ending) {
      this.#response.end();
      return;
    }
    if (!this.#refusing) return;
    this.#refusing = false;
    for (const listener of this.#drainListeners) listener();
  }
}
