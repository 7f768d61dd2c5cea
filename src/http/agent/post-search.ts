/** `POST …/turn/search`: looks back through the person's conversations. The fence is judged beside the search; a lost attempt is shown nothing. */
import { checkAttempt } from '../../../db/ledger/fence.ts';
import type { Database } from '../../../db/pool.ts';
import { type SearchResponse, searchRequestSchema } from '../../contract/agent.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { TurnSearch } from '../ports.ts';
import type { Route } from '../route.ts';
import { refusalFault } from './refusal.ts';
import { type RunDeps, readCall, runRoute } from './run-routes.ts';

export function postSearch({
  callers,
  db,
  search,
}: Pick<RunDeps, 'callers'> & { readonly db: Database; readonly search: TurnSearch }): Route {
  return runRoute({ method: 'POST', name: 'turn/search' }, callers, async (ctx, { runId, epoch, sandbox }) => {
    const request = await readCall(ctx, searchRequestSchema, { maxBytes: LIMITS.agentBodyMaxBytes });
    const key = { runId, epoch, sandboxId: sandbox.sandboxId };
    const [state, found] = await Promise.all([checkAttempt(db, key), search(runId, request)]);
    if (!state || !found) throw refusalFault({ kind: 'lost' });
    if (state.stop) throw refusalFault({ kind: 'stopped', stop: state.stop });
    ctx.body = found satisfies SearchResponse;
  });
}
