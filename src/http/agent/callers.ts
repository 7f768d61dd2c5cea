/**
 * Owns: who calls the agent listener: a live sandbox, and for calls of a run the attempt that it names.
 * A sandbox that was ended is refused at once on every server: the credential is looked up for each call, or (`fenced`) the call's own
 * statement asks whether the sandbox lives, and the credential is looked up when the call is refused. What a credential belongs to never
 * changes while its sandbox lives, so that much is remembered.
 * Does not own: whether the attempt still has its run (rule R5): each call's own statement decides.
 */
import { createHash } from 'node:crypto';
import type Koa from 'koa';
import type { Attempt, SandboxIdentity } from '../../../actors/index.ts';
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
/** Sandboxes that are remembered; a full book starts anew. */
const KNOWN_MAX = 20_000;

export class Callers {
  readonly #db: Database;
  /** By the credential's hash. */
  readonly #known = new Map<string, SandboxIdentity>();

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * The sandbox that shows a live credential, looked up now. Throws SANDBOX_UNKNOWN, also when `runId` is a run of another conversation, and
   * when the call comes over the socket of another sandbox.
   */
  async sandbox(ctx: Koa.Context, runId: RunId | null): Promise<SandboxIdentity> {
    const hash = credentialHash(ctx);
    const found = hash && (await findSandbox(this.#db, hash, runId));
    if (hash && !found) this.#known.delete(hash.toString('base64'));
    if (!hash || !found || found.foreignRun || !mayCome(ctx.req.socket, found.sandboxId)) {
      throw new RuntimeFault('SANDBOX_UNKNOWN', 'This credential belongs to no running sandbox of this conversation. End this runner.');
    }
    const { sandboxId, workspaceId, conversationId } = found;
    const identity = { sandboxId, workspaceId, conversationId };
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(hash.toString('base64'), identity);
    return identity;
  }

  /** The attempt that a call names, in its headers and for calls under `/runs/{runId}` in its path too; its sandbox is looked up now. */
  async attempt(ctx: Koa.Context): Promise<Attempt> {
    return attemptOf(ctx, await this.sandbox(ctx, runOf(ctx)));
  }

  /**
   * Serves a call whose own statement lets nothing pass of a sandbox that has ended, or of another conversation's run: it does nothing and
   * tells nothing before that statement has passed. A call that is refused for whatever reason is answered SANDBOX_UNKNOWN if that is so.
   */
  async fenced(ctx: Koa.Context, serve: (attempt: Attempt) => Promise<void>): Promise<void> {
    const known = this.#known.get(credentialHash(ctx)?.toString('base64') ?? '');
    if (!known || !mayCome(ctx.req.socket, known.sandboxId)) return serve(await this.attempt(ctx));
    try {
      await serve(attemptOf(ctx, known));
    } catch (error) {
      await this.#refuseEnded(ctx);
      throw error;
    }
    if (ctx.status >= 400) await this.#refuseEnded(ctx);
  }

  /** Where the database does not say, the call's own refusal stands. */
  async #refuseEnded(ctx: Koa.Context): Promise<void> {
    if (ctx.headerSent || ctx.respond === false) return;
    await this.sandbox(ctx, runOf(ctx)).catch((error: unknown) => {
      if (error instanceof RuntimeFault && error.code === 'SANDBOX_UNKNOWN') throw error;
    });
  }
}

function credentialHash(ctx: Koa.Context): Buffer | null {
  const credential = BEARER.exec(ctx.get('authorization'))?.[1];
  return credential === undefined ? null : createHash('sha256').update(credential).digest();
}

function runOf(ctx: Koa.Context): RunId | null {
  const runId = ctx.get(AGENT_RUN_HEADER);
  return isUuid(runId) ? (runId as RunId) : null;
}

/** It is kept in `ctx.state` for the report. */
function attemptOf(ctx: Koa.Context, sandbox: SandboxIdentity): Attempt {
  const runId = runOf(ctx);
  const epoch = ctx.get(AGENT_EPOCH_HEADER);
  if (runId === null || runId !== (param(ctx, 'runId') ?? runId))
    throw new InputFault([{ path: AGENT_RUN_HEADER, message: 'must be the id of the run in the path' }]);
  if (!EPOCH.test(epoch)) throw new InputFault([{ path: AGENT_EPOCH_HEADER, message: 'must be the epoch of the claim, a whole number' }]);
  const attempt = { sandbox, runId, epoch: Number(epoch) };
  ctx.state['attempt'] = attempt;
  return attempt;
}
