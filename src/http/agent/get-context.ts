/** `GET …/context`: everything that the loop needs to run the turn. */
import type { Route } from '../route.ts';
import { refusalFault } from './refusal.ts';
import { fencedRoute, type RunDeps } from './run-routes.ts';

export function getContext({ runtime, callers }: RunDeps): Route {
  return fencedRoute({ method: 'GET', name: 'context' }, callers, async (ctx, attempt) => {
    const reply = await runtime.readContext(attempt);
    if (reply.kind !== 'context') throw refusalFault(reply);
    ctx.body = reply.context;
  });
}
