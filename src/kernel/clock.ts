/**
 * Owns: time inside one process. Leases and deadlines are NOT judged here: rule R8 gives them to the database clock.
 * Specs drive time through a `Clock` of their own (spec/support/manual-clock.ts) instead of sleeping.
 */

/** A timer that can be cancelled. Cancelling twice is harmless. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. For display and ids only. */
  now(): number;
  /** Milliseconds that never go back. For durations. */
  monotonicMs(): number;
  /** Run `fn` once after `delayMs`. Timers never keep the process alive. */
  after(delayMs: number, fn: () => void): Timer;
  /** Run `fn` each `everyMs` until cancelled. Timers never keep the process alive. */
  every(everyMs: number, fn: () => void): Timer;
}

/** Node's timers fire at once above this many milliseconds. */
const TIMER_MAX_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, fn) {
    const handle = setTimeout(fn, Math.min(Math.max(0, delayMs), TIMER_MAX_MS));
    handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
  every(everyMs, fn) {
    const handle = setInterval(fn, Math.min(Math.max(1, everyMs), TIMER_MAX_MS));
    handle.unref();
    return { cancel: () => clearInterval(handle) };
  },
};

/** Resolves after `delayMs`, or at once when `signal` aborts. Never rejects. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      timer.cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.after(delayMs, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}
