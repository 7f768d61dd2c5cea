/**
 * Owns: one model call in flight and the one place where it is cut: the first cause wins, and everything that waits for the provider ends.
 * Does not own: what the sandbox is told (exchange.ts, relay.ts).
 */
import type { CallInFlight, Sealed } from '../../db/gateway/live-calls.ts';
import type { CallId, RunId, SandboxId } from '../kernel/ids.ts';

/** Why a call ended before its provider ended it. */
export type Cut =
  | { readonly kind: 'aborted' }
  | { readonly kind: 'stalled' }
  | { readonly kind: 'sealed'; readonly sealed: Sealed }
  | { readonly kind: 'draining' };

export interface CallNames {
  readonly callId: CallId;
  readonly runId: RunId;
  readonly epoch: number;
  readonly sandboxId: SandboxId;
}

export class ModelCall implements CallInFlight {
  readonly callId: CallId;
  readonly runId: RunId;
  readonly epoch: number;
  readonly sandboxId: SandboxId;
  /** When the database last said that the attempt may call (monotonic time of the question). */
  verifiedAtMs: number;
  readonly #abort = new AbortController();
  readonly #wasCut = Promise.withResolvers<Cut>();
  #cause: Cut | null = null;

  constructor(names: CallNames, nowMs: number) {
    this.callId = names.callId;
    this.runId = names.runId;
    this.epoch = names.epoch;
    this.sandboxId = names.sandboxId;
    this.verifiedAtMs = nowMs;
  }

  /** Ends the provider's request at once. Only the first cause counts. */
  cut(cause: Cut): void {
    if (this.#cause) return;
    this.#cause = cause;
    this.#wasCut.resolve(cause);
    this.#abort.abort();
  }

  /** null while nobody has cut the call. */
  get cause(): Cut | null {
    return this.#cause;
  }

  /** Resolves when the call is cut; never if it is not. */
  get whenCut(): Promise<Cut> {
    return this.#wasCut.promise;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }
}
