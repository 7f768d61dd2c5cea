/** `POST …/end`: the driver is through with the run, or hands it on. */
import { runEndRequestSchema } from '../../contract/agent.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { Route } from '../route.ts';
import { refusalFault } from './refusal.ts';
import { type RunDeps, readCall, runRoute } from './run-routes.ts';

export function postRunEnd({ runtime, callers }: RunDeps): Route {
  return runRoute({ method: 'POST', name: 'end' }, callers, async (ctx, attempt) => {
    const reply = await runtime.endRun(attempt, await readCall(ctx, runEndRequestSchema, { maxBytes: LIMITS.agentBodyMaxBytes }));
    if (reply.kind === 'lost') throw refusalFault(reply);
    ctx.status = 204;
  });
}
