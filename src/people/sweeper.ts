/**
 * Owns: taking away sessions and attempts that have ended, in bounded batches. Nothing waits for it: the database judges each use.
 */
import { sweepSignIns } from '../../db/people/sessions.ts';
import type { Executor } from '../../db/pool.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';

const EVERY_MS = 600_000;
const BATCH_MAX = 1_000;

/** Sweeps now and then until it is stopped. `stop` waits for the batch that runs. */
export class SignInSweeper {
  readonly #deps: { readonly db: Executor; readonly clock: Clock; readonly log: Log };
  #running: Promise<void> | undefined;
  #stopped = false;
  #timer: { cancel(): void } | undefined;

  constructor(deps: { readonly db: Executor; readonly clock: Clock; readonly log: Log }) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer = this.#deps.clock.every(EVERY_MS, () => {
      this.#running ??= this.#sweep().finally(() => {
        this.#running = undefined;
      });
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#running;
  }

  async #sweep(): Promise<void> {
    try {
      while (!this.#stopped && (await sweepSignIns(this.#deps.db, BATCH_MAX)) >= BATCH_MAX) {
        // another full batch may wait
      }
    } catch (error) {
      this.#deps.log.error('sign_in_sweep_failed', {}, error); // the next one does it
    }
  }
}
