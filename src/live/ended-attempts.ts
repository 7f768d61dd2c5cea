/**
 * Owns: which attempts of a turn are known to be over. Two servers tell of one attempt, so its last words may arrive after the word that it is
 * over; they would be shown, and nobody would clear them.
 */

/** Turns that are remembered: many times what is under way between servers. */
const TURNS_MAX = 1_000;

export class EndedAttempts {
  /** Turn -> its newest attempt (epoch) that is over; the longest known first. */
  readonly #epochs = new Map<string, number>();

  /** The attempts of this turn up to `epoch` are over. */
  note(turnId: string, epoch: number): void {
    const newest = Math.max(epoch, this.#epochs.get(turnId) ?? epoch);
    this.#epochs.delete(turnId);
    this.#epochs.set(turnId, newest);
    for (const oldest of this.#epochs.keys()) {
      if (this.#epochs.size <= TURNS_MAX) break;
      this.#epochs.delete(oldest);
    }
  }

  has(turnId: string, epoch: number): boolean {
    return epoch <= (this.#epochs.get(turnId) ?? Number.NEGATIVE_INFINITY);
  }
}
