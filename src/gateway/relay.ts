/**
 * Owns: carrying a provider's answer to the sandbox. A stream passes byte for byte, at the sandbox's pace, and is read on the way (for its
 * tokens and its end). A stream that is not complete never ends cleanly: its connection is destroyed, so that a loop cannot take half an
 * answer for a whole one.
 * Does not own: the refusals of the gateway (problems.ts) or the row of the call (exchange.ts).
 */
import { once } from 'node:events';
import type { Context } from 'koa';
import type { CallOutcome, TokenUsage } from '../../db/gateway/close-calls.ts';
import type { Clock } from '../kernel/clock.ts';
import { readWhole } from './body.ts';
import { sandboxHeaders } from './headers.ts';
import { parseObject } from './json.ts';
import type { ModelCall } from './model-call.ts';
import {
  ANSWER_TOO_LARGE,
  answerProblem,
  type GatewayProblem,
  inBandError,
  KEY_REFUSED,
  NOT_AN_ANSWER,
  STALLED_CODE,
  STALLED_DETAIL,
  unansweredProblem,
} from './problems.ts';
import type { Provider, ProviderReply } from './provider.ts';
import type { StallWatch } from './stall-watch.ts';
import { NO_USAGE, StreamFacts } from './stream-facts.ts';

/** An answer in one piece. Errors are small; an answer without a stream holds at most the model's output. */
const WHOLE_MAX_BYTES = 8 * 1024 * 1024;
/** How long a reader may take for the error that ends its stream. */
const LAST_WORDS_MS = 1_000;

export interface Ending {
  readonly outcome: CallOutcome;
  readonly httpStatus: number | null;
  readonly usage: TokenUsage;
  /** Bytes of the answer that were passed on. */
  readonly bytes: number;
  /** Kind of a failure to reach the provider, for the log. */
  readonly error?: string | undefined;
}

export interface Relay {
  readonly ctx: Context;
  readonly call: ModelCall;
  readonly provider: Provider;
  readonly watch: StallWatch;
  readonly clock: Clock;
  /** The request asked for a stream. */
  readonly streams: boolean;
}

/** Carries the answer and resolves with how the call ended. */
export async function relayReply(relay: Relay, reply: ProviderReply): Promise<Ending> {
  const { status, headers } = reply;
  const ending = { outcome: 'provider_error', httpStatus: status, usage: NO_USAGE, bytes: 0 } as const;
  const problem = refuseReply(reply, relay.streams);
  if (problem) {
    reply.discard();
    answerProblem(relay.ctx, problem);
    return ending;
  }
  if (status < 300 && relay.streams && !isJson(headers['content-type'])) return relayStream(relay, reply);
  return relayWhole(relay, reply);
}

/** What must not reach the sandbox as it is: our key's refusal would look like its own, and a page of a web site like an answer. */
function refuseReply({ status, headers }: ProviderReply, streams: boolean): GatewayProblem | null {
  if (status === 401 || status === 403) return KEY_REFUSED;
  if (status < 200 || (status >= 300 && status < 400)) return NOT_AN_ANSWER;
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return NOT_AN_ANSWER;
  const readable = isJson(headers['content-type']) || (streams && !/^text\/html\b/i.test(headers['content-type'] ?? ''));
  return status < 300 && !readable ? NOT_AN_ANSWER : null;
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/([\w.-]+\+)?json\b/i.test(contentType ?? '');
}

/** An error, or an answer to a request that did not ask for a stream. */
async function relayWhole({ ctx, call, provider, watch }: Relay, reply: ProviderReply): Promise<Ending> {
  const facts = new StreamFacts(provider.api);
  const ending = { httpStatus: reply.status, usage: NO_USAGE, bytes: 0 };
  let whole: Buffer | null;
  try {
    whole = await readWhole(reply.body, WHOLE_MAX_BYTES, (chunks) => watch.bytes(chunks));
  } catch {
    const cause = call.cause;
    answerProblem(ctx, unansweredProblem(cause ?? { kind: 'unreachable', error: undefined }));
    return { ...ending, outcome: cause?.kind ?? 'truncated' };
  }
  if (whole === null) {
    answerProblem(ctx, ANSWER_TOO_LARGE);
    return { ...ending, outcome: 'provider_error' };
  }
  const json = parseObject(whole.toString('utf8'));
  if (json) facts.readWhole(json);
  ctx.status = reply.status;
  ctx.set(sandboxHeaders(reply.headers));
  ctx.body = whole;
  const good = reply.status < 300 && json !== undefined && facts.outcome === 'ok';
  return { ...ending, outcome: good ? 'ok' : 'provider_error', usage: facts.usage, bytes: whole.length };
}

async function relayStream(relay: Relay, reply: ProviderReply): Promise<Ending> {
  const { ctx, call, provider } = relay;
  const { res } = ctx;
  const facts = new StreamFacts(provider.api);
  ctx.respond = false;
  res.writeHead(reply.status, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  });
  res.flushHeaders();
  const bytes = await pump(relay, reply, facts);
  const cause = call.cause;
  const complete = facts.outcome !== 'truncated';
  // Whatever happened after the model's last word changes nothing for the loop.
  const outcome = complete || !cause ? facts.outcome : cause.kind;
  if (complete) res.end();
  else if (cause?.kind === 'stalled')
    await breakOff(relay, facts.betweenEvents ? inBandError(provider.api, STALLED_CODE, STALLED_DETAIL) : '');
  else res.destroy();
  return { outcome, httpStatus: reply.status, usage: facts.usage, bytes };
}

/** Passes bytes until the provider's stream ends, breaks or is cut. Returns how many. */
async function pump({ ctx, call, watch }: Relay, reply: ProviderReply, facts: StreamFacts): Promise<number> {
  let bytes = 0;
  try {
    for await (const chunk of reply.body) {
      bytes += chunk.length;
      facts.push(chunk);
      watch.bytes(facts.contentEvents);
      if (facts.over) watch.finishing();
      if (ctx.res.write(chunk)) continue;
      watch.pause();
      await once(ctx.res, 'drain', { signal: call.signal });
      watch.resume();
    }
    facts.end();
  } catch {
    // Cut, or the provider's connection broke: what the stream said so far decides.
  }
  return bytes;
}

/**
 * Sends a last text and destroys the connection when its reader has hung up, or a moment later: a client library drops what it has not
 * read yet when the connection breaks.
 */
function breakOff({ ctx: { res }, clock }: Relay, text: string): Promise<void> {
  if (text === '') res.destroy();
  if (res.destroyed) return Promise.resolve();
  res.write(text);
  return new Promise((resolve) => {
    const timer = clock.after(LAST_WORDS_MS, () => res.destroy());
    res.once('close', () => {
      timer.cancel();
      resolve();
    });
  });
}
