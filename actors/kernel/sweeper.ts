/**
 * Owns: the one sweep timer of a system, whatever the number of kinds and actors.
 */
import type { Clock, Timer } from '../../src/kernel/clock.ts';

export interface Sweepable {
  readonly sweepMs: number;
  /** True: there is more to do, sweep again soon. */
  sweep(): boolean;
}

export class Sweeper {
  readonly #clock: Clock;
  readonly #dueMs = new Map<Sweepable, number>();
  #everyMs = Number.POSITIVE_INFINITY;
  #timer: Timer | null = null;
  #followUp: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The timer runs at the pace of the kind that sweeps most often; the others are swept by the first tick at which they are due. */
  add(kind: Sweepable): void {
    this.#dueMs.set(kind, this.#clock.monotonicMs() + kind.sweepMs);
    if (kind.sweepMs >= this.#everyMs) return;
    this.#everyMs = kind.sweepMs;
    this.#timer?.cancel();
    this.#timer = this.#clock.every(kind.sweepMs, () => this.#tick());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#followUp?.cancel();
    this.#dueMs.clear();
  }

  #tick(): void {
    const nowMs = this.#clock.monotonicMs();
    let more = false;
    for (const [kind, dueMs] of this.#dueMs) {
      // A timer of Node may fire a millisecond early by the monotonic clock.
      if (nowMs + 1 < dueMs) continue;
      const unfinished = kind.sweep();
      this.#dueMs.set(kind, unfinished ? nowMs : nowMs + kind.sweepMs);
      more ||= unfinished;
    }
    this.#followUp?.cancel();
    this.#followUp = more ? this.#clock.after(0, () => this.#tick()) : null;
  }
}
