/**
 * Owns: the one clock of a bench: monotonic and the same in all processes of this machine, so that their moments can be subtracted.
 */
const NS_PER_MS = 1e6;

/** Milliseconds since some moment before the bench. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / NS_PER_MS;
}
