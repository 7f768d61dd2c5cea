/**
 * Owns: the bounds on a provider's silence: no response headers, no byte, no content. One timer, re-armed when it fires, so that a byte costs
 * no timer. Time in which the sandbox does not read is not the provider's silence.
 * Does not own: what happens then (the call is cut).
 */
import type { Clock, Timer } from '../kernel/clock.ts';
import type { ModelBounds } from './model-config.ts';

/** How long a provider may keep a stream open after its model has finished. */
const LINGER_MS = 2_000;

export class StallWatch {
  readonly #clock: Clock;
  readonly #bounds: ModelBounds;
  readonly #onStall: () => void;
  #timer: Timer | undefined;
  #byteAtMs = 0;
  #contentAtMs = 0;
  #contentEvents = 0;
  #pausedAtMs: number | null = null;
  #idleMs: number;

  /** Starts with the wait for response headers. `onStall` is called at most once. */
  constructor(clock: Clock, bounds: ModelBounds, onStall: () => void) {
    this.#clock = clock;
    this.#bounds = bounds;
    this.#onStall = onStall;
    this.#idleMs = bounds.idleTimeoutMs;
    this.#timer = clock.after(bounds.firstByteTimeoutMs, () => this.#stall());
  }

  /** The headers have arrived: from now on bytes and content are watched. */
  answered(): void {
    this.#byteAtMs = this.#contentAtMs = this.#clock.monotonicMs();
    this.#arm();
  }

  /** Bytes have arrived. `contentEvents` counts the events with content since the start. */
  bytes(contentEvents: number): void {
    this.#byteAtMs = this.#clock.monotonicMs();
    if (contentEvents === this.#contentEvents) return;
    this.#contentEvents = contentEvents;
    this.#contentAtMs = this.#byteAtMs;
  }

  /** The model is done; only the end of the stream is missing. */
  finishing(): void {
    if (this.#idleMs <= LINGER_MS) return;
    this.#idleMs = LINGER_MS;
    this.#arm();
  }

  /** The sandbox does not take bytes at the moment. */
  pause(): void {
    this.#pausedAtMs = this.#clock.monotonicMs();
    this.#timer?.cancel();
  }

  resume(): void {
    if (this.#pausedAtMs === null) return;
    const nowMs = this.#clock.monotonicMs();
    this.#contentAtMs += nowMs - this.#pausedAtMs;
    this.#byteAtMs = nowMs;
    this.#pausedAtMs = null;
    this.#arm();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(this.#leftMs(), () => this.#check());
  }

  #check(): void {
    if (this.#leftMs() <= 0) this.#stall();
    else this.#arm();
  }

  #leftMs(): number {
    const dueMs = Math.min(this.#byteAtMs + this.#idleMs, this.#contentAtMs + this.#bounds.noContentTimeoutMs);
    return dueMs - this.#clock.monotonicMs();
  }

  #stall(): void {
    this.stop();
    this.#onStall();
  }
}
