/**
 * Owns: the one way by which model calls leave: a fetch for Pi's providers that adds what proves the call, counts it, and listens to
 * what the gateway says about the attempt. A call that the gateway could not take sends nothing to a provider, so it is sent again for as
 * long as the other calls of an attempt are: Pi's own few repeats would not outlast a restart of the database.
 * Does not own: time limits of a model call (the gateway has them) and what Pi repeats.
 * Rule R5: a model call carries run and epoch, and none leaves after the attempt is decided.
 */
import { fetch as undiciFetch } from 'undici';
import { LIMITS } from '../src/contract/limits.ts';
import { type Clock, pause } from '../src/kernel/clock.ts';
import { RUNNER } from './config.ts';
import { type Fate, isStall } from './fate.ts';
import { type Refusal, readRefusal, type Transport } from './transport.ts';

export interface ModelFetchOptions {
  readonly transport: Transport;
  readonly headers: () => Readonly<Record<string, string>>;
  readonly fate: Fate;
  readonly clock: Clock;
}

type Fetch = typeof globalThis.fetch;

/** Fetches for `StreamOptions.fetch`. Both count against the one limit of model calls, and throw when the attempt may make no further one. */
export interface ModelFetches {
  /** A provider that falls silent ends the turn as stalled. */
  readonly answer: Fetch;
  /** A provider that falls silent costs the summary only: one that cannot be written never fails the question. */
  readonly summary: Fetch;
}

export function createModelFetches(options: ModelFetchOptions): ModelFetches {
  const { transport, fate, clock } = options;
  let calls = 0;
  let silent = false;
  const send = async (onStall: () => void, input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    if (fate.decided.aborted) throw new Error('the attempt is over');
    calls += 1;
    if (calls > LIMITS.modelCallsMax) {
      fate.settle({ kind: 'failed', reason: 'ERROR', detail: 'call_limit' });
      throw new Error('the attempt has made all of its model calls');
    }
    const url = input instanceof Request ? input.url : String(input);
    const headers = { ...withoutCredentials(init.headers), ...options.headers() };
    // undici's types and the global ones describe the same objects.
    const request = { ...init, headers, dispatcher: transport.dispatcher } as unknown as Parameters<typeof undiciFetch>[1];
    for (const delayMs of [...RUNNER.retryDelaysMs, null]) {
      const response = (await undiciFetch(url, request)) as unknown as Response;
      if (response.ok) return watched(response, onStall);
      const refusal = await readRefused(response);
      if (delayMs === null || !NOT_TAKEN.has(refusal.code ?? '')) return refused(refusal, fate, onStall);
      await pause(clock, delayMs, fate.decided);
      if (fate.decided.aborted) break;
    }
    throw new Error('the attempt is over');
  };
  const stalled = (): void => fate.settle({ kind: 'failed', reason: 'STALLED', detail: 'model_error' });
  const noSummary = (): void => {
    silent = true;
  };
  const answer = (...call: Parameters<Fetch>): Promise<Response> => send(stalled, ...call);
  // Pi would try a silent provider again, and each try takes as long as the gateway waits.
  const summary = async (...call: Parameters<Fetch>): Promise<Response> => {
    const response = silent ? null : await send(noSummary, ...call);
    return silent || response === null ? new Response(NO_SUMMARY, { status: 400 }) : response;
  };
  return { answer: answer as Fetch, summary: summary as Fetch };
}

/** Nothing in it is a reason for Pi to try again. */
const NO_SUMMARY = JSON.stringify({ error: { message: 'no summary' } });

/** Whatever the provider's client believes to be its key stays here. */
function withoutCredentials(headers: RequestInit['headers']): Record<string, string> {
  const kept = new Headers(headers);
  kept.delete('authorization');
  kept.delete('x-api-key');
  return Object.fromEntries(kept);
}

/** The gateway's own words for a call that it could not take now: nothing of it has left. */
const NOT_TAKEN: ReadonlySet<string> = new Set(['DATABASE_UNAVAILABLE', 'BUSY', 'DRAINING']);

interface Refused extends Refusal {
  readonly text: string;
  readonly contentType: string;
}

async function readRefused(response: Response): Promise<Refused> {
  const text = (await response.text()).slice(0, RUNNER.replyMaxBytes);
  return { ...readRefusal(response.status, text), text, contentType: response.headers.get('content-type') ?? 'text/plain' };
}

function refused(refusal: Refused, fate: Fate, onStall: () => void): Response {
  if (isStall(refusal)) onStall();
  else fate.hearRefusal(refusal);
  return new Response(refusal.text, { status: refusal.status, headers: { 'content-type': refusal.contentType } });
}

/**
 * The gateway's error event for a provider that fell silent in the middle of an answer. Pi shows the message of such an event only,
 * so it is looked for in the bytes. Words of the model cannot look like it: inside a JSON string each quotation mark is escaped.
 */
const STALL_EVENT = /"code"\s*:\s*"upstream_(stalled|paused)"/i;
const STALL_EVENT_MAX_CHARS = 64;

/** The same answer, listened to on its way. */
function watched(response: Response, onStall: () => void): Response {
  let tail = '';
  const listen = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, out) => {
      const text = tail + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1');
      if (STALL_EVENT.test(text)) onStall();
      tail = text.slice(-STALL_EVENT_MAX_CHARS);
      out.enqueue(chunk);
    },
  });
  const body = response.body?.pipeThrough(listen) ?? null;
  return new Response(body, { status: response.status, headers: Object.fromEntries(response.headers) });
}
