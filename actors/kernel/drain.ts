/**
 * Owns: the end of a system: what was accepted is finished, then the kinds stop one after the other.
 * A kind that stops later still accepts what the accepted work of the others asks of it; everything else is refused from the start.
 */
import type { Clock } from '../../src/kernel/clock.ts';

export interface Drainable {
  readonly pending: number;
  quiet(): Promise<void>;
  close(): void;
  abandon(): void;
}

/** Stops `kinds` in the given order. False: not all was answered within `withinMs`, and the rest was abandoned. */
export async function drainKinds(kinds: readonly Drainable[], withinMs: number, clock: Clock): Promise<boolean> {
  const { promise: expired, resolve: expire } = Promise.withResolvers<'expired'>();
  const timer = clock.after(withinMs, () => expire('expired'));
  try {
    for (const kind of kinds) {
      while (kind.pending > 0) {
        if ((await Promise.race([kind.quiet(), expired])) !== 'expired') continue;
        for (const rest of kinds) rest.abandon();
        return false;
      }
      kind.close();
    }
    return true;
  } finally {
    timer.cancel();
  }
}
