/**
 * Owns: what the routes of one run share: the attempt, the body, and the 409s.
 */
import type Koa from 'koa';
import type { z } from 'zod';
import type { Attempt, Runtime } from '../../../actors/index.ts';
import { type BodyOptions, readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import type { Route } from '../route.ts';
import type { Callers } from './callers.ts';

export interface RunDeps {
  readonly runtime: Runtime;
  readonly callers: Callers;
}

type Serve = (ctx: Koa.Context, attempt: Attempt) => Promise<void>;
type At = Pick<Route, 'method'> & { readonly name: string };

/** A route under `/internal/agent/runs/{runId}`. */
export function runRoute(at: At, callers: Callers, serve: Serve): Route {
  return routeAt(at, async (ctx) => serve(ctx, await callers.attempt(ctx)));
}

/** The same for a call whose own statement judges the sandbox with the attempt (callers.ts). */
export function fencedRoute(at: At, callers: Callers, serve: Serve): Route {
  return routeAt(at, (ctx) => callers.fenced(ctx, (attempt) => serve(ctx, attempt)));
}

function routeAt({ method, name }: At, handle: Route['handle']): Route {
  return { method, path: `/internal/agent/runs/:runId/${name}`, handle };
}

/** The body of a call, checked. */
export async function readCall<T>(ctx: Koa.Context, schema: z.ZodType<T>, options: BodyOptions): Promise<T> {
  return parseInput(schema, await readJsonBody(ctx, options));
}
