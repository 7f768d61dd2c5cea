/** `POST …/turn/partial`: what the loop has written since its last report. */
import { type PartialResponse, partialRequestSchema } from '../../contract/agent.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { Route } from '../route.ts';
import { refusalFault } from './refusal.ts';
import { fencedRoute, type RunDeps, readCall } from './run-routes.ts';

export function postPartial({ runtime, callers }: RunDeps): Route {
  return fencedRoute({ method: 'POST', name: 'turn/partial' }, callers, async (ctx, attempt) => {
    const partial = await readCall(ctx, partialRequestSchema, { maxBytes: LIMITS.agentBodyMaxBytes });
    const reply = await runtime.publishPartial(attempt, partial);
    if (reply.kind !== 'taken') throw refusalFault(reply);
    const { resync, stop } = reply;
    ctx.body = { ...(resync ? { resync } : {}), ...(stop ? { stop } : {}) } satisfies PartialResponse;
  });
}
