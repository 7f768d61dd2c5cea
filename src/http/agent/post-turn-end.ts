/** `POST …/turn/end`: stores the turn's entries and outcome. A repeat is answered 409 and stores nothing twice. */
import { turnEndRequestSchema } from '../../contract/agent.ts';
import { LIMITS } from '../../contract/limits.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { Route } from '../route.ts';
import { refusalFault } from './refusal.ts';
import { fencedRoute, type RunDeps, readCall } from './run-routes.ts';

export function postTurnEnd({ runtime, callers }: RunDeps): Route {
  return fencedRoute({ method: 'POST', name: 'turn/end' }, callers, async (ctx, attempt) => {
    const end = await readCall(ctx, turnEndRequestSchema, { maxBytes: LIMITS.gatewayBodyMaxBytes });
    const reply = await runtime.endTurn(attempt, end);
    if (reply.kind === 'lost') throw refusalFault(reply);
    if (reply.kind === 'refused') throw new RuntimeFault('BAD_REQUEST', `The end was refused (${reply.why}). End the turn as failed.`);
    ctx.status = 204;
  });
}
