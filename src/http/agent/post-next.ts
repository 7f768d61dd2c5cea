/** `POST /internal/agent/next`: a sandbox waits for the next run of its conversation; 204 when there is none. */
import type { Runtime } from '../../../actors/index.ts';
import { nextRequestSchema } from '../../contract/agent.ts';
import { LIMITS } from '../../contract/limits.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import type { Route } from '../route.ts';
import type { Callers } from './callers.ts';

export interface NextDeps {
  readonly runtime: Pick<Runtime, 'claimNext'>;
  readonly callers: Callers;
  /** Aborts when the listener stops: parked pulls are answered with 204. */
  readonly stopping: AbortSignal;
  /** What the attempt sends along when it is traced; null: it is not. */
  readonly traceparent?: ((run: { readonly id: string; readonly epoch: number }) => string | null) | undefined;
}

export function postNext({ runtime, callers, stopping, traceparent }: NextDeps): Route {
  return {
    method: 'POST',
    path: '/internal/agent/next',
    async handle(ctx) {
      const hungUp = new AbortController();
      const { res } = ctx;
      const gone = () => hungUp.abort();
      res.once('close', gone);
      try {
        const sandbox = await callers.sandbox(ctx, null);
        const { waitMs } = parseInput(nextRequestSchema, await readJsonBody(ctx, { maxBytes: LIMITS.agentBodyMaxBytes }));
        if (res.destroyed) hungUp.abort();
        const run = await runtime.claimNext(sandbox, waitMs, AbortSignal.any([hungUp.signal, stopping]));
        ctx.status = run ? 200 : 204;
        const traced = run && traceparent?.(run);
        if (run) ctx.body = { run: { ...run, ...(traced ? { traceparent: traced } : {}) } };
      } finally {
        res.off('close', gone);
      }
    },
  };
}
