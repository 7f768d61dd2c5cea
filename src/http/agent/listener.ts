/**
 * Owns: the agent listener: sandboxes only. An unknown path is an empty 404: this listener describes itself to nobody.
 */
import type Koa from 'koa';
import type { Runtime } from '../../../actors/index.ts';
import type { Database } from '../../../db/pool.ts';
import type { Log } from '../../kernel/log.ts';
import type { ContextItems, TurnSearch } from '../ports.ts';
import { createApp, type RequestObserver, type Route } from '../route.ts';
import { createServer, type HttpListener } from '../server.ts';
import { Callers } from './callers.ts';
import { getContext } from './get-context.ts';
import { postDocument } from './post-document.ts';
import { postLease } from './post-lease.ts';
import { postLoad } from './post-load.ts';
import { type NextDeps, postNext } from './post-next.ts';
import { postPartial } from './post-partial.ts';
import { postRunEnd } from './post-run-end.ts';
import { postSearch } from './post-search.ts';
import { postTurnEnd } from './post-turn-end.ts';

export interface AgentListenerOptions {
  readonly runtime: Runtime;
  readonly db: Database;
  readonly search: TurnSearch;
  /** Answers what is under `/internal/llm/`; nothing of a sandbox that has ended may pass it. `ctx.state` has the calling `attempt` and its `sandbox` (types of actors/index.ts). */
  readonly gateway: Koa.Middleware;
  /** Item documents and loads; without it there are none. */
  readonly items?: ContextItems;
  readonly traceparent?: NextDeps['traceparent'];
  readonly connectionsMax: number;
  readonly log: Log;
  readonly observe?: RequestObserver;
}

const MODEL_CALLS = '/internal/llm/';
/** Longer than the gateway's own bounds for a silent provider. */
const IDLE_TIMEOUT_MS = 600_000;

/** Every route of the agent wire, except model calls. */
export function agentRoutes(
  options: Pick<AgentListenerOptions, 'runtime' | 'db' | 'search' | 'items' | 'traceparent'> & { callers: Callers; stopping: AbortSignal },
): readonly Route[] {
  const { items } = options;
  return [
    ...[postNext(options), getContext(options), postLease(options), postPartial(options)],
    ...[postSearch(options), postTurnEnd(options), postRunEnd(options)],
    ...(items ? [postDocument(options, items), postLoad(options, items)] : []),
  ];
}

function nothingHere(ctx: Koa.Context): void {
  ctx.body = null;
  ctx.status = 404;
}

export function createAgentListener(options: AgentListenerOptions): HttpListener {
  const { db, gateway, log, observe, connectionsMax } = options;
  const stop = new AbortController();
  const callers = new Callers(db);
  const app = createApp({
    log,
    observe,
    routes: agentRoutes({ ...options, callers, stopping: stop.signal }),
    otherwise: async (ctx) => {
      if (!ctx.path.startsWith(MODEL_CALLS)) return nothingHere(ctx);
      ctx.state['route'] = `${MODEL_CALLS}*`;
      await callers.fenced(ctx, async (attempt) => {
        Object.assign(ctx.state, { attempt, sandbox: attempt.sandbox });
        await gateway(ctx, async () => nothingHere(ctx));
      });
    },
  });
  const onStop = () => stop.abort();
  return createServer({
    callback: app.callback(),
    portVariable: 'HEPH_AGENT_PORT',
    connectionsMax,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    onStop,
  });
}
