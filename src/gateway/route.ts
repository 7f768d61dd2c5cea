/**
 * Owns: the HTTP face of the gateway: which paths exist, who calls (the listener has authenticated the sandbox), a body within its bound.
 * Whatever it refuses has opened no row and sent no byte.
 */
import type { Context, Middleware } from 'koa';
import type { SandboxIdentity } from '../../actors/index.ts';
import { AGENT_EPOCH_HEADER, AGENT_RUN_HEADER, LLM_APIS, type LlmApi } from '../contract/agent.ts';
import { LIMITS } from '../contract/limits.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { isUuid, type RunId } from '../kernel/ids.ts';
import { readRequest } from './body.ts';
import type { CallRequest } from './exchange.ts';
import { type JsonObject, parseObject } from './json.ts';
import { API_PATHS } from './model-config.ts';
import { applyPolicy } from './policy.ts';
import { answerProblem, BAD_JSON, badRequest, bodyTooLarge, type GatewayProblem } from './problems.ts';

const PREFIX = '/internal/llm/v1';
const PATH_APIS = new Map(LLM_APIS.map((api) => [`${PREFIX}${API_PATHS[api]}`, api]));
const BETA_QUERY = 'beta=true';

export interface RouteDeps {
  /** Makes the call and answers the request. */
  readonly exchange: (ctx: Context, request: CallRequest) => Promise<void>;
}

/** Serves `POST /internal/llm/v1/…`; every other request goes on to the next middleware. */
export function gatewayRoute(deps: RouteDeps): Middleware {
  return async (ctx, next) => {
    const api = ctx.method === 'POST' ? PATH_APIS.get(ctx.path) : undefined;
    if (api === undefined) return next();
    const sandbox = ctx.state['sandbox'] as SandboxIdentity | undefined;
    if (!sandbox) throw new RuntimeFault('UNAUTHENTICATED', 'A sandbox credential is needed.');
    const read = await readCall(ctx, api);
    if (read === 'hung up') ctx.respond = false;
    else if ('status' in read) answerProblem(ctx, read);
    else await deps.exchange(ctx, { ...sandbox, ...read, api, beta: ctx.querystring === BETA_QUERY });
  };
}

type CheckedCall = Pick<CallRequest, 'runId' | 'epoch' | 'json' | 'streams'>;

async function readCall(ctx: Context, api: LlmApi): Promise<CheckedCall | GatewayProblem | 'hung up'> {
  if (ctx.querystring !== '' && !(api === 'anthropic-messages' && ctx.querystring === BETA_QUERY)) {
    return badRequest('This path takes no query.');
  }
  const runId = ctx.get(AGENT_RUN_HEADER);
  const epoch = ctx.get(AGENT_EPOCH_HEADER);
  if (!isUuid(runId) || !/^\d{1,9}$/.test(epoch)) return badRequest('X-Agent-Run and X-Agent-Epoch must name the run and its epoch.');
  if ((ctx.get('content-encoding') || 'identity') !== 'identity') return badRequest('The body must not be compressed.');
  const body = await readRequest(ctx.req, LIMITS.gatewayBodyMaxBytes).catch(() => 'hung up' as const);
  if (body === 'hung up') return body;
  if (body.kind === 'too_large') return bodyTooLarge(!body.read);
  const json = decode(body.bytes);
  if (!json) return BAD_JSON;
  const allowed = applyPolicy(api, json);
  if (allowed.kind === 'refused') return badRequest(allowed.why);
  return { runId: runId as RunId, epoch: Number(epoch), json: allowed.json, streams: allowed.streams };
}

/** Strict UTF-8: a replaced character would be sent to the provider as if the loop had written it. */
function decode(bytes: Buffer): JsonObject | undefined {
  try {
    return parseObject(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
