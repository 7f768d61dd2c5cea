/**
 * Owns: the LLM gateway as a whole: model calls of sandboxes go in, one provider answers, each call has one usage row, and a call whose
 * attempt is over ends at once.
 * Does not own: the listener and its authentication (src/http), prices, the breaker (a Provider that wraps one).
 */
import type { Middleware } from 'koa';
import type { CallOutcome } from '../../db/gateway/close-calls.ts';
import type { Executor } from '../../db/pool.ts';
import { type Clock, pause } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { type CallBounds, CallsInFlight } from './calls-in-flight.ts';
import { ClosingWriter } from './closings.ts';
import { exchange } from './exchange.ts';
import type { ModelBounds } from './model-config.ts';
import { answerProblem, DRAINING } from './problems.ts';
import type { Provider } from './provider.ts';
import { gatewayRoute } from './route.ts';

export interface GatewayOptions {
  readonly db: Executor;
  readonly provider: Provider;
  readonly clock: Clock;
  readonly log: Log;
  readonly bounds: ModelBounds;
  readonly callBounds: CallBounds;
}

export interface GatewayStats {
  readonly inFlight: number;
  /** Closings that are not written yet. */
  readonly closingsWaiting: number;
  /** Opened calls that have ended, since the start. */
  readonly ended: Readonly<Partial<Record<CallOutcome, number>>>;
}

export interface Gateway {
  /** For the agent listener, after it has set `ctx.state.sandbox`; nothing may have read the body. */
  readonly middleware: Middleware;
  /** For each change, local or from another server: the calls in flight of these runs end at once, unless they are a newer attempt's. */
  seal(runIds: readonly string[]): void;
  stats(): GatewayStats;
  /** Refuses new calls, waits up to `graceMs` for those in flight, cuts the rest, and resolves when all their rows are written. */
  drain(graceMs: number): Promise<void>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { db, provider, clock, log, bounds, callBounds } = options;
  const calls = new CallsInFlight({ db, clock, log, bounds: callBounds });
  const closings = new ClosingWriter({ db, clock, log });
  const ended: Partial<Record<CallOutcome, number>> = {};
  const onEnd = (outcome: CallOutcome) => {
    ended[outcome] = (ended[outcome] ?? 0) + 1;
  };
  const deps = { db, provider, clock, log, bounds, calls, closings, onEnd };
  let draining = false;
  return {
    middleware: gatewayRoute({
      provider,
      exchange: async (ctx, request) => (draining ? answerProblem(ctx, DRAINING) : exchange(deps, ctx, request)),
    }),
    seal: (runIds) => calls.seal(runIds),
    stats: () => ({ inFlight: calls.size, closingsWaiting: closings.waiting, ended: { ...ended } }),
    async drain(graceMs) {
      draining = true;
      const waited = new AbortController();
      const idle = calls.idle().then(() => waited.abort());
      await pause(clock, graceMs, waited.signal);
      calls.cutAll();
      await idle;
      calls.stop();
      await closings.flushed();
      await provider.close();
    },
  };
}
