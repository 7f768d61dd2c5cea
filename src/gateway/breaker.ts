/**
 * Owns: when calls to a provider pause because it does not answer. A state without I/O; its owner tells others (breakers.ts).
 * Closed: everything passes. Open: nothing does, for `pauseMs`. Half open: one call probes; its success closes, its failure opens again.
 * It opens at `failuresMax` failures within `windowMs`, if these are at least half of the calls that ended in that time: a busy provider
 * with a few errors is not one that does not answer.
 */

/** What a call says about its provider: nothing, when it was cut by us. */
export type Verdict = 'success' | 'failure' | 'nothing';

export interface BreakerBounds {
  readonly failuresMax: number;
  readonly windowMs: number;
  readonly pauseMs: number;
}

export const BREAKER_BOUNDS: BreakerBounds = { failuresMax: 5, windowMs: 60_000, pauseMs: 30_000 };

/** Ended calls that are remembered; more in one window than this are judged by the newest. */
const REMEMBERED_MAX = 500;

export type BreakerState = 'closed' | 'open' | 'half-open';

export class Breaker {
  readonly #bounds: BreakerBounds;
  #ended: { readonly atMs: number; readonly failed: boolean }[] = [];
  /** Until when nothing passes; null: closed. */
  #openUntilMs: number | null = null;
  #probing = false;

  constructor(bounds: BreakerBounds = BREAKER_BOUNDS) {
    this.#bounds = bounds;
  }

  state(nowMs: number): BreakerState {
    if (this.#openUntilMs === null) return 'closed';
    return nowMs < this.#openUntilMs ? 'open' : 'half-open';
  }

  /** Whether a call may leave now. A `probe` must be told with `ended`, like every call that may leave. */
  enter(nowMs: number): 'call' | 'probe' | 'paused' {
    const state = this.state(nowMs);
    if (state === 'closed') return 'call';
    if (state === 'open' || this.#probing) return 'paused';
    this.#probing = true;
    return 'probe';
  }

  /** A call that was let through has ended. Returns what changed. */
  ended(entered: 'call' | 'probe', verdict: Verdict, nowMs: number): 'opened' | 'closed' | null {
    if (entered === 'probe') return this.#probed(verdict, nowMs);
    // A call from before the pause says nothing about now.
    if (verdict === 'nothing' || this.#openUntilMs !== null) return null;
    const oldestMs = nowMs - this.#bounds.windowMs;
    this.#ended = [...this.#ended, { atMs: nowMs, failed: verdict === 'failure' }]
      .filter(({ atMs }) => atMs > oldestMs)
      .slice(-REMEMBERED_MAX);
    const failures = this.#ended.filter(({ failed }) => failed).length;
    return failures >= this.#bounds.failuresMax && failures * 2 >= this.#ended.length ? this.#open(nowMs) : null;
  }

  #probed(verdict: Verdict, nowMs: number): 'opened' | 'closed' | null {
    this.#probing = false;
    if (verdict === 'nothing') return null; // the next call probes
    if (verdict === 'failure') return this.#open(nowMs);
    this.#openUntilMs = null;
    return 'closed';
  }

  #open(nowMs: number): 'opened' {
    this.#openUntilMs = nowMs + this.#bounds.pauseMs;
    this.#ended = [];
    return 'opened';
  }
}
