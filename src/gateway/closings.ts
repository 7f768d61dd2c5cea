/**
 * Owns: writing how calls ended, after their answers: batched, in the background, with bounded retries. rule: R15
 * A closing that is lost (the database was away for too long, or this server died) leaves an open row, which the sweep of unknown calls
 * closes without tokens. The statement closes a row once, so a repeat after an unknown outcome changes nothing.
 * A closing's commit waits for no flush, and a PostgreSQL that is killed within a moment forgets it although it said yes: so each closing is
 * written once more a second later, which finds it closed and writes nothing, or closes it again.
 */
import { type CallClosing, closeCalls } from '../../db/gateway/close-calls.ts';
import type { Executor } from '../../db/pool.ts';
import { type Clock, pause, type Timer } from '../kernel/clock.ts';
import { errorKind, type Log } from '../kernel/log.ts';
import { TRANSIENT } from '../kernel/transient.ts';

const BATCH_MAX = 200;
const WAITING_MAX = 10_000;
/** Longer than PostgreSQL takes to flush an asynchronous commit (three times wal_writer_delay, 200 ms each). */
const CONFIRM_AFTER_MS = 1_000;
/** Closings to be confirmed; beyond it the oldest go unconfirmed. */
const WRITTEN_MAX = 10_000;
const PAUSES_MS: readonly number[] = TRANSIENT.modelCallClosing.pausesMs;

export class ClosingWriter {
  readonly #db: Executor;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #waiting: CallClosing[] = [];
  /** Written a moment ago. */
  readonly #written: CallClosing[] = [];
  #confirmation: Timer | undefined;
  #writing: Promise<void> | null = null;

  constructor(deps: { readonly db: Executor; readonly clock: Clock; readonly log: Log }) {
    this.#db = deps.db;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  /** Closings that are not written yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Takes a closing; it is written soon. */
  add(closing: CallClosing): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.#waiting.shift();
      this.#log.error('model_call_closings_dropped', { dropped: 1 });
    }
    this.#waiting.push(closing);
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when everything taken so far is written or given up, and confirmed once more. */
  async flushed(): Promise<void> {
    await this.#writing;
    this.#confirmation?.cancel();
    if (this.#written.length > 0) await this.#confirm();
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH_MAX);
      if (!(await this.#write(batch))) this.#log.error('model_call_closings_dropped', { dropped: batch.length });
      const done = new Set(batch);
      this.#waiting.splice(0, this.#waiting.length, ...this.#waiting.filter((closing) => !done.has(closing)));
    }
    this.#writing = null;
  }

  async #write(batch: readonly CallClosing[]): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await closeCalls(this.#db, batch);
        this.#confirmSoon(batch);
        return true;
      } catch (error) {
        this.#log.warn('model_call_closings_failed', { calls: batch.length, tries, error: errorKind(error) });
        const pauseMs = PAUSES_MS[tries - 1];
        if (pauseMs === undefined) return false;
        await pause(this.#clock, pauseMs);
      }
    }
  }

  #confirmSoon(batch: readonly CallClosing[]): void {
    this.#written.push(...batch);
    this.#written.splice(0, Math.max(0, this.#written.length - WRITTEN_MAX));
    this.#confirmation ??= this.#clock.after(CONFIRM_AFTER_MS, () => void this.#confirm());
  }

  /** Never rejects: what cannot be confirmed is most probably written. */
  async #confirm(): Promise<void> {
    this.#confirmation = undefined;
    try {
      while (this.#written.length > 0) {
        const again = await closeCalls(this.#db, this.#written.splice(0, BATCH_MAX));
        if (again > 0) this.#log.warn('model_call_closings_lost', { written_again: again });
      }
    } catch (error) {
      this.#log.warn('model_call_closings_unconfirmed', { error: errorKind(error) });
    }
  }
}
