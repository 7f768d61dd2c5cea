/**
 * Owns: one breaker per connection on this server, and telling the installation: while one is open, `llm_connection.paused_until` keeps every
 * server from admitting turns. rule: R8 (the pause ends by the database clock)
 * Does not own: when a breaker opens (breaker.ts), what a refused call is answered (exchange.ts).
 */
import type { CallOutcome } from '../../db/gateway/close-calls.ts';
import { pauseConnection } from '../../db/gateway/pause-connection.ts';
import type { Executor } from '../../db/pool.ts';
import type { Clock } from '../kernel/clock.ts';
import { errorKind, type Log } from '../kernel/log.ts';
import { BREAKER_BOUNDS, Breaker, type BreakerState, type Verdict } from './breaker.ts';

const KEPT_MAX = 1_000;

/** What a call's end says: a 4xx and a stream that broke are answers; a call that we cut says nothing. */
export function verdictOf(outcome: CallOutcome, httpStatus: number | null): Verdict {
  if (outcome === 'unreachable' || outcome === 'stalled') return 'failure';
  if (httpStatus === null) return 'nothing';
  if (httpStatus >= 500) return 'failure';
  return outcome === 'ok' || outcome === 'provider_error' ? 'success' : 'nothing';
}

/** A call that may leave; its end must be told once. */
export interface Passage {
  ended(outcome: CallOutcome, httpStatus: number | null): void;
}

export class Breakers {
  readonly #db: Executor;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #breakers = new Map<string, Breaker>();

  constructor({ db, clock, log }: { readonly db: Executor; readonly clock: Clock; readonly log: Log }) {
    this.#db = db;
    this.#clock = clock;
    this.#log = log;
  }

  /** null: the connection is paused. */
  enter(connectionId: string): Passage | null {
    const breaker = this.#of(connectionId);
    const entered = breaker.enter(this.#clock.monotonicMs());
    if (entered === 'paused') return null;
    return {
      ended: (outcome, httpStatus) => {
        const changed = breaker.ended(entered, verdictOf(outcome, httpStatus), this.#clock.monotonicMs());
        if (changed) void this.#tell(connectionId, changed);
      },
    };
  }

  state(connectionId: string): BreakerState {
    return this.#breakers.get(connectionId)?.state(this.#clock.monotonicMs()) ?? 'closed';
  }

  /** Breakers that let nothing, or only a probe, through. */
  get notClosed(): number {
    return [...this.#breakers.keys()].filter((id) => this.state(id) !== 'closed').length;
  }

  #of(connectionId: string): Breaker {
    const known = this.#breakers.get(connectionId);
    if (known) return known;
    const [oldest] = this.#breakers.keys();
    if (oldest !== undefined && this.#breakers.size >= KEPT_MAX) this.#breakers.delete(oldest);
    const breaker = new Breaker();
    this.#breakers.set(connectionId, breaker);
    return breaker;
  }

  /** When it cannot be told, this server pauses alone, and turns are admitted whose calls it refuses. */
  async #tell(connectionId: string, changed: 'opened' | 'closed'): Promise<void> {
    this.#log.warn(changed === 'opened' ? 'connection_paused' : 'connection_resumed', { connectionId });
    try {
      await pauseConnection(this.#db, connectionId, changed === 'opened' ? BREAKER_BOUNDS.pauseMs : null);
    } catch (error) {
      this.#log.warn('connection_pause_untold', { connectionId, error: errorKind(error) });
    }
  }
}
