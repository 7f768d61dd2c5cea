/**
 * Owns: the life of one model call: a place among the calls in flight, the row that opens it (committed before a byte leaves), the provider's
 * answer under the bounds on its silence, the closing of the row, one log line. rule: R5  rule: R15
 * Does not own: who may call and what (route.ts, policy.ts), how an answer is carried (relay.ts).
 */
import type { Context } from 'koa';
import type { CallOutcome, TokenUsage } from '../../db/gateway/close-calls.ts';
import { type OpenCallResult, openCall } from '../../db/gateway/open-call.ts';
import type { Executor } from '../../db/pool.ts';
import type { LlmApi } from '../contract/agent.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Clock } from '../kernel/clock.ts';
import {
  type CallId,
  type ConversationId,
  type HostId,
  type RunId,
  type SandboxId,
  type TurnId,
  uuidv7,
  type WorkspaceId,
} from '../kernel/ids.ts';
import { errorKind, type Log } from '../kernel/log.ts';
import type { Breakers } from './breakers.ts';
import type { CallsInFlight } from './calls-in-flight.ts';
import type { ClosingWriter } from './closings.ts';
import type { JsonObject } from './json.ts';
import { ModelCall } from './model-call.ts';
import type { ModelBounds } from './model-config.ts';
import {
  answerProblem,
  BUSY,
  CALL_LIMIT,
  faultProblem,
  type GatewayProblem,
  NO_MODEL,
  PAUSED,
  sealedProblem,
  type Unanswered,
  unansweredProblem,
  wrongWire,
} from './problems.ts';
import { type Provider, type ProviderReply, type ProviderRequest, ProviderStalled } from './provider.ts';
import type { Providers } from './providers.ts';
import { type Ending, relayReply } from './relay.ts';
import { StallWatch } from './stall-watch.ts';
import { NO_USAGE } from './stream-facts.ts';

/** A sandbox's request, checked by the route and the policy. */
export interface CallRequest {
  readonly sandboxId: SandboxId;
  readonly workspaceId: WorkspaceId;
  readonly conversationId: ConversationId;
  readonly runId: RunId;
  readonly epoch: number;
  /** The wire that the sandbox speaks. */
  readonly api: LlmApi;
  readonly json: JsonObject;
  readonly streams: boolean;
  readonly beta: boolean;
}

/** A call that has ended, in ids, names and counts. */
export interface EndedCall {
  readonly callId: CallId;
  readonly turnId: TurnId;
  readonly runId: RunId;
  readonly epoch: number;
  readonly conversationId: ConversationId;
  readonly api: LlmApi;
  /** Its provider is Heph itself. */
  readonly builtIn: boolean;
  /** The provider's name of it. */
  readonly model: string;
  readonly outcome: CallOutcome;
  readonly httpStatus: number | null;
  readonly durationMs: number;
  readonly usage: TokenUsage;
}

export interface ExchangeDeps {
  readonly db: Executor;
  readonly providers: Providers;
  readonly clock: Clock;
  readonly log: Log;
  readonly bounds: ModelBounds;
  readonly hostId: HostId;
  readonly breakers: Breakers;
  readonly calls: CallsInFlight;
  readonly closings: ClosingWriter;
  /** Told once per opened call. */
  readonly onEnd: (outcome: CallOutcome) => void;
  /** Told what a call used, as far as its provider said it. `model`: the provider's name. */
  readonly onUsage: (model: string, usage: TokenUsage, bytes: number) => void;
  readonly onCall: (call: EndedCall) => void;
}

/** Makes the call and answers the request, whatever happens. */
export async function exchange(deps: ExchangeDeps, ctx: Context, request: CallRequest): Promise<void> {
  const call = new ModelCall({ callId: uuidv7<'call'>(), ...request }, deps.clock.monotonicMs());
  // In flight before the row is committed: a stop that commits right after it finds the call.
  if (!deps.calls.add(call)) return answerProblem(ctx, BUSY);
  const hungUp = () => call.cut({ kind: 'aborted' });
  ctx.res.once('close', hungUp);
  try {
    const opened = await open(deps, call, request);
    if (opened.kind === 'opened') await answer(deps, { ctx, call, request, opened });
    else answerProblem(ctx, notOpenedProblem(opened));
  } catch (error) {
    deps.log.error('model_call_failed', { callId: call.callId, runId: call.runId }, error);
    if (ctx.headerSent) ctx.res.destroy();
    else answerProblem(ctx, faultProblem(error));
  } finally {
    ctx.res.off('close', hungUp);
    deps.calls.remove(call);
  }
}

/** Whether the row was written when the database gave no answer, nobody knows: it is closed as what it is, a call that sent nothing. */
async function open(deps: ExchangeDeps, call: ModelCall, request: CallRequest): Promise<OpenCallResult> {
  const { callId, runId, epoch, sandboxId } = call;
  const { workspaceId, conversationId, api } = request;
  const callsMax = LIMITS.modelCallsMax;
  try {
    return await openCall(deps.db, { callId, hostId: deps.hostId, runId, epoch, sandboxId, workspaceId, conversationId, api, callsMax });
  } catch (error) {
    deps.closings.add({ callId, outcome: 'unreachable', httpStatus: null, ...NO_USAGE });
    throw error;
  }
}

function notOpenedProblem(why: Exclude<OpenCallResult, { kind: 'opened' }>): GatewayProblem {
  switch (why.kind) {
    case 'call_limit':
      return CALL_LIMIT;
    case 'wrong_wire':
      return wrongWire(why.api);
    case 'no_model':
      return NO_MODEL;
    default:
      return sealedProblem(why);
  }
}

interface OpenedCall {
  readonly ctx: Context;
  readonly call: ModelCall;
  readonly request: CallRequest;
  readonly opened: Extract<OpenCallResult, { kind: 'opened' }>;
}

const BROKEN: Ending = { outcome: 'truncated', httpStatus: null, usage: NO_USAGE, bytes: 0 };
/** Nothing was sent. */
const UNSENT: Ending = { ...BROKEN, outcome: 'unreachable' };

async function answer(deps: ExchangeDeps, openedCall: OpenedCall): Promise<void> {
  const { call, opened } = openedCall;
  const startedAtMs = deps.clock.monotonicMs();
  let ending = UNSENT;
  try {
    const provider = await deps.providers.of(opened.target);
    if ('send' in provider) ending = await passBreaker(deps, openedCall, provider);
    else answerProblem(openedCall.ctx, provider);
  } finally {
    const { outcome, httpStatus, usage, bytes, error } = ending;
    deps.closings.add({ callId: call.callId, outcome, httpStatus, ...usage });
    deps.onEnd(outcome);
    const { providerModel: model, source } = opened.target;
    const durationMs = deps.clock.monotonicMs() - startedAtMs;
    deps.onUsage(model, usage, bytes);
    const { callId, runId, epoch } = call;
    const { conversationId, api } = openedCall.request;
    const names = { callId, runId, epoch, conversationId, turnId: opened.turnId, api, model, builtIn: source === 'built-in' };
    deps.onCall({ ...names, outcome, httpStatus, durationMs, usage });
    deps.log.info('model_call', {
      callId: call.callId,
      turnId: opened.turnId,
      attempt: opened.attempt,
      runId: call.runId,
      epoch: call.epoch,
      outcome,
      status: httpStatus,
      durationMs: Math.round(durationMs),
      bytes,
      error,
      ...usage,
    });
  }
}

/** A call that a pause refuses sends nothing; every other one tells the breaker how it ended. */
async function passBreaker(deps: ExchangeDeps, openedCall: OpenedCall, provider: Provider): Promise<Ending> {
  const passage = deps.breakers.enter(openedCall.opened.target.connectionId);
  if (!passage) {
    answerProblem(openedCall.ctx, PAUSED);
    return { ...UNSENT, outcome: 'paused' };
  }
  let ending: Ending | null = null;
  try {
    ending = await askProvider(deps, openedCall, provider);
    return ending;
  } finally {
    passage.ended(ending?.outcome ?? 'aborted', ending?.httpStatus ?? null);
  }
}

async function askProvider(deps: ExchangeDeps, { ctx, call, request, opened }: OpenedCall, provider: Provider): Promise<Ending> {
  const watch = new StallWatch(deps.clock, deps.bounds, () => call.cut({ kind: 'stalled' }));
  try {
    const json = { ...request.json, model: opened.target.providerModel };
    const reply = await firstOf(provider, call, { json, beta: request.beta, headers: ctx.req.headers, signal: call.signal });
    if ('status' in reply) {
      watch.answered();
      return await relayReply({ ctx, call, watch, streams: request.streams, provider, clock: deps.clock }, reply);
    }
    answerProblem(ctx, unansweredProblem(reply));
    return { ...BROKEN, outcome: reply.kind, error: reply.kind === 'unreachable' ? reply.error : undefined };
  } finally {
    watch.stop();
  }
}

/** The provider's response headers, or why there are none; whichever comes first. A call that is already cut sends nothing. */
function firstOf(provider: Provider, call: ModelCall, request: ProviderRequest): Promise<ProviderReply | Unanswered> {
  if (call.cause) return Promise.resolve(call.cause);
  const sent = provider.send(request).catch((error: unknown): Unanswered => {
    if (call.cause) return call.cause;
    if (error instanceof ProviderStalled) return { kind: 'stalled' };
    return { kind: 'unreachable', error: errorKind(error instanceof Error ? (error.cause ?? error) : error) };
  });
  return Promise.race([call.whenCut, sent]);
}
