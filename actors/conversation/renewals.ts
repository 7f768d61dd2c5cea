/**
 * Owns: batching of lease renewals of this server into one statement (DESIGN section 5).
 * Does not own: whether an attempt may renew (the statement decides, by the database clock).
 */
import { type AttemptKey, type AttemptState, checkAttempt, renewLeases } from '../../db/ledger/fence.ts';
import type { Database } from '../../db/pool.ts';
import type { Clock } from '../../src/kernel/clock.ts';

/** Renewals that may wait for one statement. Leases are renewed each 25 s, so a few milliseconds cost nothing. */
const GATHER_MS = 5;
const BATCH_MAX = 500;

interface Waiting {
  readonly key: AttemptKey;
  readonly resolve: (state: AttemptState) => void;
  readonly reject: (error: unknown) => void;
}

export class Renewals {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #leaseTtlMs: number;
  #waiting: Waiting[] = [];

  constructor(db: Database, clock: Clock, leaseTtlMs: number) {
    this.#db = db;
    this.#clock = clock;
    this.#leaseTtlMs = leaseTtlMs;
  }

  /** null: the attempt has lost its run, or its claim is over. */
  renew(key: AttemptKey): Promise<AttemptState> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject });
      if (this.#waiting.length >= BATCH_MAX) void this.#flush();
      else if (this.#waiting.length === 1) this.#clock.after(GATHER_MS, () => void this.#flush());
    });
  }

  async #flush(): Promise<void> {
    const batch = this.#waiting;
    this.#waiting = [];
    if (batch.length === 0) return;
    try {
      const skipped = await this.#renew(batch);
      if (skipped.length === 0) return;
      // Over, or somebody held the row: the plain check says which. A model call that was being opened is through by now.
      const states = await Promise.all(skipped.map(({ key }) => checkAttempt(this.#db, key)));
      const alive = skipped.filter((_, nth) => states[nth]);
      if (alive.length > 0) await this.#renew(alive);
      for (const [nth, { resolve }] of skipped.entries()) resolve(states[nth] ?? null); // does nothing to those just renewed
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  /** Answers those that were renewed and returns the others. */
  async #renew(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    const keys = batch.map(({ key }) => key);
    const renewed = await renewLeases(this.#db, keys, this.#leaseTtlMs);
    return batch.filter(({ key, resolve }) => {
      const state = renewed.get(key.runId);
      const isTheirs = state?.epoch === key.epoch && state.sandboxId === key.sandboxId;
      if (isTheirs) resolve(state);
      return !isTheirs;
    });
  }
}
