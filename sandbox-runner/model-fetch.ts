/**
 * Owns: the one way by which model calls leave: a fetch for Pi's providers that adds what proves the call, counts it, and listens to
 * what the gateway says about the attempt.
 * Does not own: time limits of a model call (the gateway has them) and what Pi repeats.
 * Rule R5: a model call carries run and epoch, and none leaves after the attempt is decided.
 */
import { fetch as undiciFetch } from 'undici';
import { LIMITS } from '../src/contract/limits.ts';
import { RUNNER } from './config.ts';
import { type Fate, isStall } from './fate.ts';
import { readRefusal, type Transport } from './transport.ts';

export interface ModelFetchOptions {
  readonly transport: Transport;
  readonly headers: () => Readonly<Record<string, string>>;
  readonly fate: Fate;
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
  const { transport, fate } = options;
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
    const response = (await undiciFetch(url, request)) as unknown as Response;
    return response.ok ? watched(response, onStall) : await refused(response, fate, onStall);
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

async function refused(response: Response, fate: Fate, onStall: () => void): Promise<Response> {
  const text = (await response.text()).slice(0, RUNNER.replyMaxBytes);
  const refusal = readRefusal(response.status, text);
  if (isStall(refusal)) onStall();
  else fate.hearRefusal(refusal);
  return new Response(text, { status: response.status, headers: { 'content-type': response.headers.get('content-type') ?? 'text/plain' } });
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
