/**
 * Owns: server-sent events on one response, with back pressure. Only the stream class of koa-sse-stream is used, by deep import: its `send`
 * hides the callback, so frames go through the inherited `write`, one at a time; the rest waits in a queue that is bounded in events and bytes.
 * Data is always JSON: it has no line break, and it begins with a brace, which the class cannot take for a comment.
 */
import { createRequire } from 'node:module';
import { Transform } from 'node:stream';
import type Koa from 'koa';
import type { StreamEventName } from '../contract/events.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Clock } from '../kernel/clock.ts';
import type { EventSink } from './ports.ts';

type Frame = { readonly event: string; readonly data: string } | { readonly retry: number; readonly data: string } | string;
const FrameStream = createRequire(import.meta.url)('koa-sse-stream/lib/sse') as new (ctx: Koa.Context) => Transform;

/** The class overrides `end` with one that never ends. */
const endTransform = Transform.prototype.end as (this: Transform) => void;

/** No proxy may keep, change or gather what is sent. */
export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

const COMMENT = ':';
const QUEUE_MAX_BYTES = 1024 * 1024;
/** A reader who does not take the goodbye is cut after this time. */
const GOODBYE_MS = 2_000;

export class SseChannel implements EventSink {
  readonly #clock: Clock;
  readonly #ctx: Koa.Context;
  readonly #stream: Transform;
  readonly #queue: { readonly frame: Frame; readonly bytes: number }[] = [];
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
    this.#ctx = ctx;
    this.#stream = new FrameStream(ctx);
    ctx.status = 200;
    ctx.body = this.#stream;
    ctx.remove('Connection');
    ctx.set(STREAM_HEADERS);
    this.#stream.once('close', () => this.#gone());
    ctx.res.once('close', () => this.destroy());
    if (ctx.res.destroyed || ctx.req.socket.destroyed) this.destroy();
  }

  get idle(): boolean {
    return !this.#writing && this.#queue.length === 0;
  }

  get stalledMs(): number {
    return this.#writing ? this.#clock.monotonicMs() - this.#writingSinceMs : 0;
  }

  /** Bytes in memory for this reader: the queue, and what the streams below hold. */
  get bufferedBytes(): number {
    return this.#queuedBytes + this.#stream.readableLength + this.#ctx.res.writableLength;
  }

  send(event: StreamEventName, json: string): boolean {
    if (this.#closed || this.#ending || this.#refusing) return false;
    const bytes = Buffer.byteLength(json);
    const full = this.#queue.length >= LIMITS.streamQueueMaxEvents || this.#queuedBytes + bytes > QUEUE_MAX_BYTES;
    if (!this.idle && full) {
      this.#dropQueue();
      this.#refusing = true;
      return false;
    }
    this.#push({ event, data: json }, bytes);
    return true;
  }

  ping(): void {
    if (this.idle && !this.#closed) this.#push(COMMENT, 0);
  }

  end(retryMs?: number): void {
    if (this.#closed || this.#ending) return;
    this.#ending = true;
    if (retryMs !== undefined) this.#push({ retry: retryMs, data: COMMENT }, 0);
    this.#flush();
    this.#clock.after(GOODBYE_MS, () => this.destroy());
  }

  destroy(): void {
    if (this.#closed) return;
    this.#gone();
    this.#stream.destroy();
    this.#ctx.res.destroy();
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

  #push(frame: Frame, bytes: number): void {
    this.#queue.push({ frame, bytes });
    this.#queuedBytes += bytes;
    this.#flush();
  }

  #dropQueue(): void {
    this.#queue.length = 0;
    this.#queuedBytes = 0;
  }

  /** Writes the next frame. Its callback comes when the stream has passed it on, which it does only while the reader reads. */
  #flush(): void {
    if (this.#writing || this.#closed) return;
    const next = this.#queue.shift();
    if (!next) {
      this.#drained();
      return;
    }
    this.#queuedBytes -= next.bytes;
    this.#writing = true;
    this.#writingSinceMs = this.#clock.monotonicMs();
    this.#stream.write(next.frame, (error) => {
      this.#writing = false;
      if (!error) this.#flush();
    });
  }

  #drained(): void {
    if (this.#ending) {
      endTransform.call(this.#stream);
      return;
    }
    if (!this.#refusing) return;
    this.#refusing = false;
    for (const listener of this.#drainListeners) listener();
  }
}
