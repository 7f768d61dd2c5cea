/** `POST …/turn/sandbox/document`: one item document of the context folder. */
import { type DocumentResponse, documentRequestSchema } from '../../contract/agent.ts';
import { LIMITS } from '../../contract/limits.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { ContextItems } from '../ports.ts';
import type { Route } from '../route.ts';
import { refusalFault } from './refusal.ts';
import { type RunDeps, readCall, runRoute } from './run-routes.ts';

export function postDocument({ callers }: Pick<RunDeps, 'callers'>, items: ContextItems): Route {
  return runRoute({ method: 'POST', name: 'turn/sandbox/document' }, callers, async (ctx, attempt) => {
    const { path } = await readCall(ctx, documentRequestSchema, { maxBytes: LIMITS.agentBodyMaxBytes });
    const reply = await items.readDocument(attempt, path);
    if (reply.kind === 'notFound')
      throw new RuntimeFault('DOCUMENT_NOT_FOUND', 'There is no document at this path. Take paths from INDEX.md and from documents.');
    if (reply.kind !== 'document') throw refusalFault(reply);
    ctx.body = { path, content: reply.content } satisfies DocumentResponse;
  });
}
