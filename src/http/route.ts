/**
 * Owns: dispatch. Each route is one value; an unknown path is 404 and a wrong method 405 with Allow, both as problem documents.
 */
import Router from '@koa/router';
import Koa from 'koa';
import { RuntimeFault } from '../kernel/faults.ts';
import { uuidv7 } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { problems } from './problem.ts';

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With parameters as `:name`. Also the route's name in metrics and logs. */
  readonly path: string;
  handle(ctx: Koa.Context): Promise<void> | void;
}

/** What one request did. `route` is the route's path, or a word for what has none. */
export interface RequestReport {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  /** The attempt of a sandbox that called. */
  readonly attempt?: { readonly runId: string; readonly epoch: number };
}
export type RequestObserver = (report: RequestReport) => void;

export interface AppOptions {
  readonly log: Log;
  readonly routes: readonly Route[];
  /** Runs inside of the problem documents and before the routes. */
  readonly before?: readonly Koa.Middleware[];
  /** Answers what no route matches; it may throw, or leave the context alone for a 404. */
  readonly otherwise?: Koa.Middleware;
  readonly observe?: RequestObserver | undefined;
}

/** A parameter of the route's path, decoded. */
export function param(ctx: Koa.Context, name: string): string | undefined {
  const params: unknown = ctx['params'];
  return typeof params === 'object' && params !== null ? (params as Record<string, string | undefined>)[name] : undefined;
}

/** Connections that their client closed while we wrote: nothing went wrong here. */
const HANG_UPS = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE', 'ECONNABORTED']);

export function createApp(options: AppOptions): Koa {
  const app = new Koa();
  app.on('error', (error: Error & { code?: string }) => {
    if (!HANG_UPS.has(error.code ?? '')) options.log.error('http.connection_failed', {}, error);
  });
  app.use(report(options));
  app.use(problems(options.log));
  for (const middleware of options.before ?? []) app.use(middleware);
  const router = new Router({ sensitive: true, strict: true });
  for (const route of options.routes) {
    router.register(route.path, [route.method], async (ctx) => {
      ctx.state['route'] = route.path;
      await route.handle(ctx as unknown as Koa.Context);
    });
  }
  app.use(router.routes() as unknown as Koa.Middleware);
  app.use(refuseMethod);
  if (options.otherwise) app.use(options.otherwise);
  app.use(() => {
    throw new RuntimeFault('NOT_FOUND', 'There is nothing at this address. Check the path.');
  });
  return app;
}

function report({ observe, log }: AppOptions): Koa.Middleware {
  return async (ctx, next) => {
    const startedMs = performance.now();
    const requestId = uuidv7<'request'>();
    ctx.state['requestId'] = requestId;
    ctx.set('X-Request-Id', requestId);
    await next();
    const { method, status } = ctx;
    const durationMs = performance.now() - startedMs;
    const route = String(ctx.state['route'] ?? 'none');
    log.debug('http.request', { requestId, route, method, status, durationMs: Math.round(durationMs) });
    const attempt = ctx.state['attempt'] as RequestReport['attempt'];
    observe?.({ route, method, status, durationMs, ...(attempt ? { attempt } : {}) });
  };
}

/** The path is known and the method is not: the router has noted which routes have the path. */
const refuseMethod: Koa.Middleware = async (ctx, next) => {
  const matched = (ctx['matched'] ?? []) as readonly { readonly methods: readonly string[] }[];
  if (matched.length === 0) return next();
  const allow = [...new Set(matched.flatMap(({ methods }) => methods))].sort().join(', ');
  throw methodNotAllowed(ctx, allow);
};

/** Sets Allow. */
export function methodNotAllowed(ctx: Koa.Context, allow: string): RuntimeFault {
  ctx.set('Allow', allow);
  return new RuntimeFault('METHOD_NOT_ALLOWED', `This address takes ${allow}.`);
}
