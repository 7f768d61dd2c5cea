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
      const renewed = await renewLeases(
        this.#db,
        batch.map((waiting) => waiting.key),
        this.#leaseTtlMs,
      );
      await Promise.all(
        batch.map(async ({ key, resolve }) => {
          const state = renewed.get(key.runId);
          // Skipped because somebody holds the row: it is being ended or taken back; the plain check says what is true now.
          resolve(state ?? (await checkAttempt(this.#db, key)));
        }),
      );
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
