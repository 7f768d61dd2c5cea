/**
 * Owns: what is decided about an attempt while it runs, by whoever learns it first: a stop, a lost lease, a hand-on, a failure.
 * Does not own: what follows from it (turn.ts) and when a lease is over (lease.ts).
 * Rule R5: an attempt that lost its lease makes no call any more, so that verdict beats every other and closes the way out.
 */
import type { FailureDetail } from '../src/contract/agent.ts';
import type { StopReason } from '../src/contract/common.ts';

export type Verdict =
  /** A graceful stop of this process: the attempt is given back. */
  | { readonly kind: 'handOn' }
  | { readonly kind: 'failed'; readonly reason: 'ERROR' | 'STALLED'; readonly detail: FailureDetail }
  /** The server ended the turn: its person stopped it, or its time is over. */
  | { readonly kind: 'stopped'; readonly stop: StopReason }
  /** Somebody else may hold the run now. */
  | { readonly kind: 'lost' };

/** The gateway's code for a provider that does not answer: the turn ends, the call is not tried again. */
const STALLED = /^upstream_(stalled|paused)$/i;

/** Whether the gateway refused a model call because its provider does not answer. */
export function isStall(refusal: { readonly code: string | null }): boolean {
  return STALLED.test(refusal.code ?? '');
}

/** A stronger verdict replaces a weaker one: what the server says beats what this process decides for itself. */
const STRENGTH = { handOn: 1, failed: 2, stopped: 3, lost: 4 } as const;

export class Fate {
  #verdict: Verdict | null = null;
  readonly #decided = new AbortController();
  readonly #lost = new AbortController();

  /** The strongest verdict so far; null while the attempt simply runs. */
  get verdict(): Verdict | null {
    return this.#verdict;
  }

  /** Aborts with the first verdict: the work of the attempt stops. */
  get decided(): AbortSignal {
    return this.#decided.signal;
  }

  /** Aborts when the lease is lost: no call may leave after that. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  settle(verdict: Verdict): void {
    if (this.#verdict !== null && STRENGTH[this.#verdict.kind] >= STRENGTH[verdict.kind]) return;
    this.#verdict = verdict;
    if (verdict.kind === 'lost') this.#lost.abort();
    this.#decided.abort();
  }

  /** What a refusal of any call of the run means for it. Returns true when it decided the attempt. */
  hearRefusal(refusal: { readonly status: number; readonly code: string | null; readonly stop: StopReason | null }): boolean {
    if (refusal.code === 'MENTOR_TURN_STOPPED') {
      this.settle({ kind: 'stopped', stop: refusal.stop ?? 'developer' });
      return true;
    }
    // 401: the credential is not (any more) for this run's conversation.
    if (refusal.code === 'MENTOR_LEASE_LOST' || refusal.status === 401) {
      this.settle({ kind: 'lost' });
      return true;
    }
    if (isStall(refusal)) {
      this.settle({ kind: 'failed', reason: 'STALLED', detail: 'model_error' });
      return true;
    }
    return false;
  }
}
