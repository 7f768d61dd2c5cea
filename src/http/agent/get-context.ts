/** `GET …/context`: everything that the loop needs to run the turn. */
import type { Route } from '../route.ts';
import { refusalFault } from './attempt.ts';
import { type RunDeps, runRoute } from './run-routes.ts';

export function getContext({ runtime, db }: RunDeps): Route {
  return runRoute({ method: 'GET', name: 'context' }, db, async (ctx, attempt) => {
    const reply = await runtime.readContext(attempt);
    if (reply.kind !== 'context') throw refusalFault(reply);
    ctx.body = reply.context;
  });
}
