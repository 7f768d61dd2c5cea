/**
 * Owns: who calls the agent listener: a live sandbox, and for calls of a run the attempt that it names.
 * The credential is looked up on each call, so a sandbox that was ended is refused at once on every server.
 * Does not own: whether the attempt still has its run (rule R5): each call's own statement decides.
 */
import { createHash } from 'node:crypto';
import type Koa from 'koa';
import type { Attempt, Refusal, SandboxIdentity } from '../../../actors/index.ts';
import type { Database } from '../../../db/pool.ts';
import { findSandbox } from '../../../db/web/find-sandbox.ts';
import { AGENT_EPOCH_HEADER, AGENT_RUN_HEADER } from '../../contract/agent.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { isUuid, type RunId } from '../../kernel/ids.ts';
import { InputFault } from '../input.ts';
import { param } from '../route.ts';
import { mayCome } from './doors.ts';

const BEARER = /^Bearer ([A-Za-z0-9_-]{16,256})$/i;
const EPOCH = /^\d{1,9}$/;

/**
 * The sandbox that shows a live credential. Throws SANDBOX_UNKNOWN, also when `runId` is a run of another conversation, and when the call comes
 * over the socket of another sandbox.
 */
export async function requireSandbox(ctx: Koa.Context, db: Database, runId: RunId | null): Promise<SandboxIdentity> {
  const credential = BEARER.exec(ctx.get('authorization'))?.[1];
  const hash = credential === undefined ? null : createHash('sha256').update(credential).digest();
  const found = hash && (await findSandbox(db, hash, runId));
  if (!found || found.foreignRun || !mayCome(ctx.req.socket, found.sandboxId)) {
    throw new RuntimeFault('SANDBOX_UNKNOWN', 'This credential belongs to no running sandbox of this conversation. End this runner.');
  }
  const { sandboxId, workspaceId, conversationId } = found;
  return { sandboxId, workspaceId, conversationId };
}

/** The attempt that a call names: in its headers, and for calls under `/runs/{runId}` in its path too. It is kept in `ctx.state` for the report. */
export async function requireAttempt(ctx: Koa.Context, db: Database): Promise<Attempt> {
  const runId = ctx.get(AGENT_RUN_HEADER);
  const epoch = ctx.get(AGENT_EPOCH_HEADER);
  const inPath = param(ctx, 'runId') ?? runId;
  const sandbox = await requireSandbox(ctx, db, isUuid(runId) ? (runId as RunId) : null);
  if (!isUuid(runId) || runId !== inPath)
    throw new InputFault([{ path: AGENT_RUN_HEADER, message: 'must be the id of the run in the path' }]);
  if (!EPOCH.test(epoch)) throw new InputFault([{ path: AGENT_EPOCH_HEADER, message: 'must be the epoch of the claim, a whole number' }]);
  const attempt = { sandbox, runId: runId as RunId, epoch: Number(epoch) };
  ctx.state['attempt'] = attempt;
  return attempt;
}

/** The 409 for an attempt that lost its run or was stopped. */
export function refusalFault(refusal: Refusal): RuntimeFault {
  if (refusal.kind === 'lost') {
    return new RuntimeFault('MENTOR_LEASE_LOST', 'This attempt does not hold its run any more. Drop it and pull the next run.');
  }
  const { stop } = refusal;
  return new RuntimeFault('MENTOR_TURN_STOPPED', 'The turn was stopped. End it with what was written so far.', { extra: { stop } });
}
