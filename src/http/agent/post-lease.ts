/** `POST …/lease`: renews the lease; during the grace after a stop the answer carries `stop`. */
import { z } from 'zod';
import type { LeaseResponse } from '../../contract/agent.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { Route } from '../route.ts';
import { refusalFault } from './refusal.ts';
import { type RunDeps, readCall, runRoute } from './run-routes.ts';

const nothing = z.object({});

export function postLease({ runtime, callers }: RunDeps): Route {
  return runRoute({ method: 'POST', name: 'lease' }, callers, async (ctx, attempt) => {
    await readCall(ctx, nothing, { maxBytes: LIMITS.agentBodyMaxBytes, optional: true });
    const reply = await runtime.renewLease(attempt);
    if (reply.kind === 'lost') throw refusalFault(reply);
    const { leaseTtlMs, deadlineMs, stop } = reply;
    ctx.body = { leaseTtlMs, deadlineMs, ...(stop ? { stop } : {}) } satisfies LeaseResponse;
  });
}
