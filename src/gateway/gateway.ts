/**
 * Owns: the LLM gateway as a whole: model calls of sandboxes go in, the provider of the turn's admission answers, each call has one usage row,
 * and a call whose attempt is over ends at once. A sweep closes the rows that a server left open when it died. rule: R15
 * Does not own: the listener and its authentication (src/http), which model a turn has (the function turn_admission).
 */
import type { Middleware } from 'koa';
import { type CallOutcome, closeUnknownCalls, type TokenUsage } from '../../db/gateway/close-calls.ts';
import type { Executor } from '../../db/pool.ts';
import { type Clock, pause, type Timer } from '../kernel/clock.ts';
import type { HostId } from '../kernel/ids.ts';
import { errorKind, type Log } from '../kernel/log.ts';
import { Breakers } from './breakers.ts';
import { type CallBounds, CallsInFlight } from './calls-in-flight.ts';
import { ClosingWriter } from './closings.ts';
import { type EndedCall, exchange } from './exchange.ts';
import type { ModelBounds } from './model-config.ts';
import { answerProblem, DRAINING } from './problems.ts';
import type { Providers } from './providers.ts';
import { gatewayRoute } from './route.ts';

export interface GatewayOptions {
  readonly db: Executor;
  /** This boot of this server. */
  readonly hostId: HostId;
  readonly providers: Providers;
  readonly clock: Clock;
  readonly log: Log;
  readonly bounds: ModelBounds;
  readonly callBounds: CallBounds;
  /** Told what each call used, for metrics. `bytes`: of the answer. */
  readonly onUsage?: (model: string, usage: TokenUsage, bytes: number) => void;
  /** Told of each call that has ended, for traces. */
  readonly onCall?: (call: EndedCall) => void;
}

export interface GatewayStats {
  readonly inFlight: number;
  /** Closings that are not written yet. */
  readonly closingsWaiting: number;
  /** Connections that this server calls no more, or only to probe. */
  readonly connectionsPaused: number;
  /** Opened calls that have ended, since the start. */
  readonly ended: Readonly<Partial<Record<CallOutcome, number>>>;
}

export interface Gateway {
  /** For the agent listener, after it has set `ctx.state.sandbox`; nothing may have read the body. */
  readonly middleware: Middleware;
  /** Starts the sweep that closes what dead servers left open. */
  start(): void;
  /** For each change, local or from another server: the calls in flight of these runs end at once, unless they are a newer attempt's. */
  seal(runIds: readonly string[]): void;
  stats(): GatewayStats;
  /** Refuses new calls, waits up to `graceMs` for those in flight, cuts the rest, and resolves when all their rows are written. */
  drain(graceMs: number): Promise<void>;
}

/** `openMs` is longer than the longest turn and its closing, `overMs` than all tries to write a closing (closings.ts). */
const UNKNOWN_AFTER = { openMs: 20 * 60_000, overMs: 2 * 60_000 };
/** How soon operators see the calls of a server that has died, after its host was ended. */
const UNKNOWN_SWEEP_MS = 5_000;
const UNKNOWN_BATCH_MAX = 500;

/** Servers do not coordinate: rows that another one closes are skipped. */
async function closeUnknown({ db, log }: GatewayOptions, onEnd: (outcome: CallOutcome) => void): Promise<void> {
  try {
    const calls = await closeUnknownCalls(db, UNKNOWN_AFTER, UNKNOWN_BATCH_MAX);
    for (let n = 0; n < calls; n++) onEnd('unknown');
    if (calls > 0) log.warn('model_calls_unknown', { calls });
  } catch (error) {
    log.warn('model_calls_unknown_failed', { error: errorKind(error) });
  }
}

export function createGateway(options: GatewayOptions): Gateway {
  const { db, hostId, providers, clock, log, bounds, callBounds, onUsage = () => {}, onCall = () => {} } = options;
  const calls = new CallsInFlight({ db, clock, log, bounds: callBounds });
  const closings = new ClosingWriter({ db, clock, log });
  const ended: Partial<Record<CallOutcome, number>> = {};
  const onEnd = (outcome: CallOutcome) => {
    ended[outcome] = (ended[outcome] ?? 0) + 1;
  };
  const breakers = new Breakers({ db, clock, log });
  const deps = { db, hostId, providers, breakers, clock, log, bounds, calls, closings, onEnd, onUsage, onCall };
  let sweep: Timer | undefined;
  let draining = false;
  return {
    middleware: gatewayRoute({
      exchange: async (ctx, request) => (draining ? answerProblem(ctx, DRAINING) : exchange(deps, ctx, request)),
    }),
    start() {
      sweep ??= clock.every(UNKNOWN_SWEEP_MS, () => void closeUnknown(options, onEnd));
    },
    seal: (runIds) => calls.seal(runIds),
    stats: () => ({ inFlight: calls.size, closingsWaiting: closings.waiting, connectionsPaused: breakers.notClosed, ended: { ...ended } }),
    async drain(graceMs) {
      draining = true;
      const waited = new AbortController();
      const idle = calls.idle().then(() => waited.abort());
      await pause(clock, graceMs, waited.signal);
      calls.cutAll();
      await idle;
      calls.stop();
      sweep?.cancel();
      await closings.flushed();
      await providers.close();
    },
  };
}
