/**
 * Owns: the model calls of this server that run now: their bounds, and the cutting of those whose attempt was stopped, passed its deadline or
 * lost its run. rule: R5
 * A change names runs, not attempts, and may arrive late: before a call is cut the database is asked, so that the calls of a newer attempt
 * live on. It is asked again each `recheckEveryMs`, so a lost change costs at most that. Where the database does not answer, a call that a
 * change named is cut at once, and any call after `unverifiedMaxMs`: by then another server may have taken the run back.
 */
import { findSealedCalls, type Sealed } from '../../db/gateway/live-calls.ts';
import type { Executor } from '../../db/pool.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import { errorKind, type Log } from '../kernel/log.ts';
import type { ModelCall } from './model-call.ts';

export interface CallBounds {
  /** Calls of this server at once. */
  readonly callsMax: number;
  /** Calls of one run at once. The loop makes one after the other; an aborted one may still be closing. */
  readonly callsPerRunMax: number;
  readonly recheckEveryMs: number;
  /** Longest wait for the database before a call that a change named is cut anyway. */
  readonly sealWithinMs: number;
  /** Longest time that a call goes on without the database's word: the lease. */
  readonly unverifiedMaxMs: number;
}

/** Calls that one statement asks about. */
const BATCH_MAX = 500;
const LOST: Sealed = { kind: 'lost' };

export interface CallsDeps {
  readonly db: Executor;
  readonly clock: Clock;
  readonly log: Log;
  readonly bounds: CallBounds;
}

export class CallsInFlight {
  readonly #deps: CallsDeps;
  readonly #calls = new Set<ModelCall>();
  readonly #timer: Timer;
  #rechecking = false;
  #whenIdle: (() => void)[] = [];

  constructor(deps: CallsDeps) {
    this.#deps = deps;
    this.#timer = deps.clock.every(deps.bounds.recheckEveryMs, () => void this.#recheck());
  }

  get size(): number {
    return this.#calls.size;
  }

  /** False: there is no room for this call now. */
  add(call: ModelCall): boolean {
    const { callsMax, callsPerRunMax } = this.#deps.bounds;
    const ofRun = [...this.#calls].filter((other) => other.runId === call.runId).length;
    if (this.#calls.size >= callsMax || ofRun >= callsPerRunMax) return false;
    this.#calls.add(call);
    return true;
  }

  remove(call: ModelCall): void {
    this.#calls.delete(call);
    if (this.#calls.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  /** Something happened to these runs: their calls end unless the database says that they are those of a newer attempt. */
  seal(runIds: readonly string[]): void {
    const named = new Set(runIds);
    const calls = [...this.#calls].filter((call) => named.has(call.runId));
    if (calls.length > 0) void this.#sealNamed(calls);
  }

  async #sealNamed(calls: readonly ModelCall[]): Promise<void> {
    const cutAll = () => {
      for (const call of calls) call.cut({ kind: 'sealed', sealed: LOST });
    };
    const timer = this.#deps.clock.after(this.#deps.bounds.sealWithinMs, cutAll);
    if (!(await this.#verify(calls))) cutAll();
    timer.cancel();
  }

  /** Cuts all calls, for the end of a drain. */
  cutAll(): void {
    for (const call of this.#calls) call.cut({ kind: 'draining' });
  }

  /** Resolves when no call runs. */
  idle(): Promise<void> {
    if (this.#calls.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  stop(): void {
    this.#timer.cancel();
  }

  async #recheck(): Promise<void> {
    if (this.#rechecking || this.#calls.size === 0) return;
    this.#rechecking = true;
    await this.#verify([...this.#calls]);
    this.#rechecking = false;
    const oldestMs = this.#deps.clock.monotonicMs() - this.#deps.bounds.unverifiedMaxMs;
    for (const call of this.#calls) if (call.verifiedAtMs < oldestMs) call.cut({ kind: 'sealed', sealed: LOST });
  }

  /** Cuts those that the database says have lost their attempt. False when it did not answer about all of them. */
  async #verify(calls: readonly ModelCall[]): Promise<boolean> {
    const askedAtMs = this.#deps.clock.monotonicMs();
    try {
      for (let from = 0; from < calls.length; from += BATCH_MAX) {
        const batch = calls.slice(from, from + BATCH_MAX);
        const sealedCalls = await findSealedCalls(this.#deps.db, batch);
        for (const call of batch) {
          const sealed = sealedCalls.get(call.callId);
          if (sealed) call.cut({ kind: 'sealed', sealed });
          else call.verifiedAtMs = askedAtMs;
        }
      }
      return true;
    } catch (error) {
      this.#deps.log.warn('model_calls_unverified', { calls: calls.length, error: errorKind(error) });
      return false;
    }
  }
}
