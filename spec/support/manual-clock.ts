/**
 * Owns: time in specs. A clock that stands still until a spec moves it, so that no spec sleeps.
 * Timers run in the order in which they are due, and those due together in the order in which they were set, each at its own time and,
 * like those of Node, in the async context in which it was set.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Clock, Timer } from '../../src/kernel/clock.ts';

interface Entry {
  dueMs: number;
  readonly order: number;
  readonly everyMs: number | null;
  readonly fn: () => void;
}

/** A timer that sets itself again without end must fail a spec, not hang it. */
const CALLBACKS_MAX = 1_000_000;

export class ManualClock implements Clock {
  readonly #startMs: number;
  readonly #timers = new Set<Entry>();
  #elapsedMs = 0;
  #order = 0;

  /** `startMs`: the wall clock at the start, milliseconds since the Unix epoch. */
  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#startMs = startMs;
  }

  now(): number {
    return this.#startMs + this.#elapsedMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  after(delayMs: number, fn: () => void): Timer {
    return this.#add({ dueMs: this.#elapsedMs + Math.max(0, delayMs), everyMs: null, fn });
  }

  every(everyMs: number, fn: () => void): Timer {
    const paceMs = Math.max(1, everyMs);
    return this.#add({ dueMs: this.#elapsedMs + paceMs, everyMs: paceMs, fn });
  }

  /** Timers that are set and neither ran nor were cancelled. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Moves time and runs what is due on the way, in this call. What those callbacks await runs later: see `advanceAsync`. */
  advance(ms: number): void {
    const endMs = this.#elapsedMs + ms;
    for (let ran = 0; this.#runNext(endMs); ran++) {
      if (ran >= CALLBACKS_MAX)
        throw new Error(`more than ${CALLBACKS_MAX} timers ran within ${ms} ms: one of them sets itself without end`);
    }
    this.#elapsedMs = endMs;
  }

  /** As `advance`, but the event loop turns before, between and after the timers, so that code that awaits one can set the next. */
  async advanceAsync(ms: number): Promise<void> {
    const endMs = this.#elapsedMs + ms;
    do await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#runNext(endMs));
    this.#elapsedMs = endMs;
  }

  #add(entry: Omit<Entry, 'order'>): Timer {
    this.#order += 1;
    const timer: Entry = { ...entry, fn: AsyncResource.bind(entry.fn), order: this.#order };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Runs the timer that is due first, if it is due by `endMs`. */
  #runNext(endMs: number): boolean {
    let next: Entry | null = null;
    for (const timer of this.#timers) {
      if (timer.dueMs > endMs) continue;
      if (next === null || timer.dueMs < next.dueMs || (timer.dueMs === next.dueMs && timer.order < next.order)) next = timer;
    }
    if (next === null) return false;
    this.#elapsedMs = Math.max(this.#elapsedMs, next.dueMs);
    if (next.everyMs === null) this.#timers.delete(next);
    else next.dueMs += next.everyMs;
    next.fn();
    return true;
  }
}
