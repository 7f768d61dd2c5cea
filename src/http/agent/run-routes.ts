/**
 * Owns: what the routes of one run share: the attempt, the body, and the 409s.
 */
import type Koa from 'koa';
import type { z } from 'zod';
import type { Attempt, Runtime } from '../../../actors/index.ts';
import type { Database } from '../../../db/pool.ts';
import { type BodyOptions, readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import type { Route } from '../route.ts';
import { requireAttempt } from './attempt.ts';

export interface RunDeps {
  readonly runtime: Runtime;
  readonly db: Database;
}

/** A route under `/internal/agent/runs/{runId}`. */
export function runRoute(
  at: Pick<Route, 'method'> & { name: string },
  db: Database,
  serve: (ctx: Koa.Context, attempt: Attempt) => Promise<void>,
): Route {
  return {
    method: at.method,
    path: `/internal/agent/runs/:runId/${at.name}`,
    async handle(ctx) {
      await serve(ctx, await requireAttempt(ctx, db));
    },
  };
}

/** The body of a call, checked. */
export async function readCall<T>(ctx: Koa.Context, schema: z.ZodType<T>, options: BodyOptions): Promise<T> {
  return parseInput(schema, await readJsonBody(ctx, options));
}
