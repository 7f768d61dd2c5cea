/**
 * Owns: when words leave for the other servers: as soon as there are some, one batch at a time, at least 50 ms apart.
 * Does not own: the words (the sources keep them, bounded, until they are sent) or the connection (db/live/notify.ts).
 */
import type { Message } from '../../db/live/payloads.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';

/** Somebody who has words for other servers. */
export interface PeerSource {
  /** What is to be sent now; it is not offered again unless `unsent` is called. */
  take(): readonly Message[];
  /** The batch with the words last taken was lost, or a part of it. */
  unsent(): void;
}

export interface PeerPostOptions {
  readonly send: (messages: readonly Message[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

const BATCH_EVERY_MS = 50;
/** Words of one statement: at most 1.6 MB. */
const BATCH_MAX = 200;
/** Short enough that words cross again within 2 s of the heal. */
const RETRY_MAX_MS = 1_000;

export class PeerPost {
  readonly #options: PeerPostOptions;
  readonly #sources: PeerSource[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #again = false;
  #closed = false;

  constructor(options: PeerPostOptions) {
    this.#options = options;
  }

  add(source: PeerSource): void {
    this.#sources.push(source);
  }

  /** Some source has words. */
  wake(): void {
    if (this.#closed) return;
    if (this.#sending === undefined) this.#schedule();
    else this.#again = true;
  }

  /** Sends what is left, once, and sends no more. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#sending;
    await this.#send();
  }

  #schedule(): void {
    if (this.#timer || this.#closed) return;
    const pauseMs = this.#failures > 0 ? Math.min(BATCH_EVERY_MS * 2 ** this.#failures, RETRY_MAX_MS) : BATCH_EVERY_MS;
    const delayMs = this.#sentAtMs + pauseMs - this.#options.clock.monotonicMs();
    this.#timer = this.#options.clock.after(Math.max(0, delayMs), () => {
      this.#timer = undefined;
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined;
        if (this.#again || this.#failures > 0) this.#schedule();
        this.#again = false;
      });
    });
  }

  /** Never rejects. */
  async #send(): Promise<void> {
    const messages = this.#sources.flatMap((source) => source.take());
    try {
      for (let at = 0; at < messages.length; at += BATCH_MAX) await this.#options.send(messages.slice(at, at + BATCH_MAX));
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      if (this.#failures === 1) this.#options.log.error('live.notify_failed', { messages: messages.length }, error);
      for (const source of this.#sources) source.unsent();
    }
    this.#sentAtMs = this.#options.clock.monotonicMs();
  }
}
