/**
 * `POST …/turn/sandbox/load`: prepares a heavy item and sends it as a tar archive; its manifest goes ahead in a header. A body that ends
 * before its length has been cut off: the load was abandoned.
 */
import { LOAD_HEADER, loadRequestSchema } from '../../contract/agent.ts';
import { LIMITS } from '../../contract/limits.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { ContextItems } from '../ports.ts';
import type { Route } from '../route.ts';
import { refusalFault } from './refusal.ts';
import { type RunDeps, readCall, runRoute } from './run-routes.ts';

export function postLoad({ callers }: Pick<RunDeps, 'callers'>, items: ContextItems): Route {
  return runRoute({ method: 'POST', name: 'turn/sandbox/load' }, callers, async (ctx, attempt) => {
    const { path } = await readCall(ctx, loadRequestSchema, { maxBytes: LIMITS.agentBodyMaxBytes });
    const { res } = ctx;
    const hungUp = new AbortController();
    res.once('close', () => hungUp.abort());
    if (res.destroyed) hungUp.abort();
    const reply = await items.load(attempt, path, hungUp.signal).catch((error: unknown) => {
      if (hungUp.signal.aborted) return null; // nobody reads an answer, and nothing went wrong here
      throw error;
    });
    if (reply === null) {
      ctx.status = 408;
      return;
    }
    if ('text' in reply) throw new RuntimeFault(reply.kind === 'refused' ? 'LOAD_REFUSED' : 'DOCUMENT_NOT_FOUND', reply.text);
    if (reply.kind !== 'load') throw refusalFault(reply);
    const { manifest, body } = reply;
    ctx.set(LOAD_HEADER, Buffer.from(JSON.stringify(manifest)).toString('base64url'));
    // A body that was cut off must not look whole, and its connection must not wait for the rest.
    body.once('close', () => body.readableEnded || res.destroy());
    ctx.body = body;
    ctx.type = 'application/x-tar';
    ctx.length = manifest.bytes;
  });
}
