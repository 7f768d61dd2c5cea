/**
 * Owns: the kernel's `Clock` on a browser's timers (the kernel's own one unrefs Node's timers).
 */
import type { Clock } from '../../kernel/clock.ts';

export const browserClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, fn) {
    const handle = setTimeout(fn, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
  every(everyMs, fn) {
    const handle = setInterval(fn, everyMs);
    return { cancel: () => clearInterval(handle) };
  },
};
