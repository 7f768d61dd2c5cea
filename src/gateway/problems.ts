/**
 * Owns: what a sandbox is told when the gateway itself answers. One body serves two readers: a problem document for the loop, and the `error`
 * member that the providers' client libraries show. Every sentence is ours; a provider's words never appear here.
 * The loop's library repeats a call whose error text reads like a passing fault ("timeout", "connection refused", "try again later", …), so
 * the sentences avoid such words: only the status says what may be repeated.
 */
import { STATUS_CODES } from 'node:http';
import type { Context } from 'koa';
import type { Sealed } from '../../db/gateway/live-calls.ts';
import type { LlmApi } from '../contract/agent.ts';
import { LIMITS } from '../contract/limits.ts';
import { type FaultCode, type Retry, RuntimeFault } from '../kernel/faults.ts';
import type { Cut } from './model-call.ts';
import { API_PATHS } from './model-config.ts';

export interface GatewayProblem {
  readonly status: number;
  readonly code: FaultCode;
  readonly detail: string;
  readonly retry: Retry;
  /** `error.code`, where the loop tells cases apart that share a problem code. */
  readonly errorCode?: string;
  readonly stop?: 'developer' | 'deadline';
  readonly retryAfterS?: number;
  readonly closesConnection?: boolean;
}

export const STALLED_CODE = 'upstream_stalled';
export const STALLED_DETAIL = 'The AI model stopped responding.';

export function badRequest(detail: string): GatewayProblem {
  return { status: 400, code: 'BAD_REQUEST', detail, retry: 'never' };
}

export const BAD_JSON: GatewayProblem = { status: 400, code: 'BAD_JSON', detail: 'The body must be one JSON object.', retry: 'never' };

/** `closesConnection`: the rest of the body was not read. */
export function bodyTooLarge(closesConnection: boolean): GatewayProblem {
  const mebibytes = LIMITS.gatewayBodyMaxBytes / 1024 / 1024;
  return {
    status: 413,
    code: 'BODY_TOO_LARGE',
    detail: `A model call has at most ${mebibytes} MiB. Send less of the conversation.`,
    retry: 'never',
    closesConnection,
  };
}

export function wrongWire(configured: LlmApi): GatewayProblem {
  const detail = `The model of this turn speaks ${configured}: call /internal/llm/v1${API_PATHS[configured]}.`;
  return { status: 404, code: 'NOT_FOUND', detail, retry: 'never' };
}

export const CALL_LIMIT: GatewayProblem = {
  status: 422,
  code: 'PROPOSAL_REFUSED',
  errorCode: 'call_limit',
  detail: `This turn has made its ${LIMITS.modelCallsMax} model calls. End it.`,
  retry: 'never',
};

/** The attempt may call no more. */
export function sealedProblem(sealed: Sealed): GatewayProblem {
  if (sealed.kind === 'lost') {
    return { status: 409, code: 'MENTOR_LEASE_LOST', detail: 'This attempt has lost its run. Stop working on it.', retry: 'never' };
  }
  const why = sealed.stop === 'developer' ? 'was stopped by its person' : 'is past its deadline';
  return { status: 409, code: 'MENTOR_TURN_STOPPED', detail: `The turn ${why}. End it.`, retry: 'never', stop: sealed.stop };
}

export const BUSY: GatewayProblem = {
  status: 503,
  code: 'BUSY',
  detail: 'Too many model calls are running.',
  retry: 'later',
  retryAfterS: 1,
};

export const DRAINING: GatewayProblem = {
  status: 503,
  code: 'DRAINING',
  detail: 'This server is shutting down.',
  retry: 'later',
  retryAfterS: 1,
};

export const STALLED: GatewayProblem = {
  status: 504,
  code: 'UPSTREAM_STALLED',
  errorCode: STALLED_CODE,
  detail: STALLED_DETAIL,
  retry: 'later',
};

/** The breaker of the connection is open. The loop ends its turn: the next ones are not admitted until the pause is over. */
export const PAUSED: GatewayProblem = {
  status: 503,
  code: 'UPSTREAM_PAUSED',
  errorCode: 'upstream_paused',
  detail: 'Calls to the AI model are paused, because it did not answer.',
  retry: 'later',
  retryAfterS: 30,
};

export const NO_MODEL: GatewayProblem = {
  status: 503,
  code: 'NO_MODEL',
  detail: 'The AI connection of this turn was disabled. Enable it, or bind another model.',
  retry: 'never',
};

/** Servers with different settings share the installation: /readyz says so. */
export const OTHER_ENVIRONMENT: GatewayProblem = {
  status: 503,
  code: 'NO_MODEL',
  detail: 'This server was started without the AI provider of this turn. Give every server the same HEPH_LLM_ variables.',
  retry: 'never',
};

export const KEY_SEALED: GatewayProblem = {
  status: 503,
  code: 'NO_MODEL',
  detail: 'This server cannot open the key of the AI connection. Give every server the HEPH_SECRET_KEY that sealed it, or store it again.',
  retry: 'never',
};

export const ADDRESS_REFUSED: GatewayProblem = {
  status: 503,
  code: 'NO_MODEL',
  detail: 'The base URL of the AI connection may not be called from this server. Correct it, or allow it with HEPH_LLM_ALLOW_PRIVATE.',
  retry: 'never',
};

export const UNREACHABLE: GatewayProblem = {
  status: 502,
  code: 'UPSTREAM_UNREACHABLE',
  detail: 'The AI provider cannot be reached. Check its address (HEPH_LLM_BASE_URL, or the connection) and that it is running.',
  retry: 'later',
};

export const KEY_REFUSED: GatewayProblem = {
  status: 502,
  code: 'UPSTREAM_ERROR',
  detail: 'The AI provider refused the key. Check HEPH_LLM_API_KEY, or the key of the connection.',
  retry: 'never',
};

export const NOT_AN_ANSWER: GatewayProblem = {
  status: 502,
  code: 'UPSTREAM_ERROR',
  detail: 'What answers at HEPH_LLM_BASE_URL (or the address of the connection) is no model API. Check the address and HEPH_LLM_API.',
  retry: 'never',
};

export const ANSWER_TOO_LARGE: GatewayProblem = {
  status: 502,
  code: 'UPSTREAM_ERROR',
  detail: 'The answer of the AI provider is larger than this server takes in one piece.',
  retry: 'never',
};

/** Why a call has no answer: it was cut, or the provider cannot be reached (`error`: the kind of failure, for the log). */
export type Unanswered = Cut | { readonly kind: 'unreachable'; readonly error: string | undefined };

/** The problem of a call that ended before the sandbox got response headers. After an abort nobody reads it. */
export function unansweredProblem(why: Unanswered): GatewayProblem {
  switch (why.kind) {
    case 'stalled':
      return STALLED;
    case 'sealed':
      return sealedProblem(why.sealed);
    case 'unreachable':
      return UNREACHABLE;
    case 'draining':
    case 'aborted':
      return DRAINING;
  }
}

/** The problem of whatever was thrown on our side. */
export function faultProblem(error: unknown): GatewayProblem {
  if (error instanceof RuntimeFault && error.retry === 'later' && error.code !== 'INTERNAL') {
    return { status: 503, code: error.code, detail: error.publicMessage, retry: 'later', retryAfterS: 1 };
  }
  return { status: 500, code: 'INTERNAL', detail: 'Something went wrong on our side.', retry: 'later' };
}

/** Answers a request with the problem. */
export function answerProblem(ctx: Context, problem: GatewayProblem): void {
  const { status, code, detail, retry, stop } = problem;
  const stopMember = stop === undefined ? {} : { stop };
  ctx.status = status;
  if (problem.retryAfterS !== undefined) ctx.set('Retry-After', String(problem.retryAfterS));
  if (problem.closesConnection) ctx.set('Connection', 'close');
  ctx.body = JSON.stringify({
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    code,
    detail,
    retry,
    ...stopMember,
    error: { type: 'heph_error', code: problem.errorCode ?? code, message: detail, ...stopMember },
  });
  ctx.type = 'application/problem+json';
}

/** An error inside of a stream that has begun, in the form of its wire. Only between two events can a client read it. */
export function inBandError(api: LlmApi, code: string, message: string): string {
  if (api === 'openai-completions') return `data: ${JSON.stringify({ error: { type: 'heph_error', code, message, param: null } })}\n\n`;
  const json =
    api === 'openai-responses'
      ? { type: 'error', code, message, param: null, sequence_number: 0 }
      : { type: 'error', error: { type: 'api_error', code, message } };
  return `event: error\ndata: ${JSON.stringify(json)}\n\n`;
}
