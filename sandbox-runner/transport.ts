/**
 * Owns: how a call reaches the agent listener: undici's own client over a unix socket or loopback TCP. The global fetch and the
 * environment's proxies are never used.
 * Does not own: which calls there are (gateway-client.ts, model-fetch.ts).
 */
import { Agent, type Dispatcher, request } from 'undici';
import type { StopReason } from '../src/contract/common.ts';
import { problemSchema } from '../src/contract/common.ts';
import { RUNNER } from './config.ts';

const UNIX = 'unix:';

export interface Transport {
  /** `http://host[:port]`, for the request line only: over a socket the host is a placeholder. */
  readonly origin: string;
  readonly dispatcher: Dispatcher;
}

/**
 * Opens the way to the gateway: `unix:/path/to.sock` or `http://127.0.0.1:port`. Its own timeouts are off: a call is bounded as a
 * whole by whoever makes it, a model call by the gateway.
 */
export function openTransport(gateway: string): Transport {
  const isSocket = gateway.startsWith(UNIX);
  const connect = { timeout: RUNNER.connectTimeoutMs, ...(isSocket ? { socketPath: gateway.slice(UNIX.length) } : {}) };
  const dispatcher = new Agent({ connect, headersTimeout: 0, bodyTimeout: 0 });
  return { origin: isSocket ? 'http://localhost' : new URL(gateway).origin, dispatcher };
}

export type Reply =
  | { readonly kind: 'answered'; readonly status: number; readonly text: string }
  /** No answer, or a server that could not give one: the same call may be repeated. */
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'cancelled' };

export interface CallOptions {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The whole call, from connecting to the last byte. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** One call with a JSON body and a bounded answer. Never throws. */
export async function call(transport: Transport, options: CallOptions): Promise<Reply> {
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs)]);
  try {
    const response = await send(transport, { ...options, signal });
    const text = await readBounded(response.body, options.maxBytes);
    if (response.statusCode >= 500) return { kind: 'unreachable' };
    return { kind: 'answered', status: response.statusCode, text };
  } catch {
    return { kind: options.signal.aborted ? 'cancelled' : 'unreachable' };
  }
}

/** An answer that is too large to be held: its body is read piece by piece, and reading may throw. */
export interface OpenReply {
  readonly kind: 'open';
  readonly header: (name: string) => string | null;
  readonly body: AsyncIterable<Buffer>;
  /** Gives the connection up when not all of the body was read. */
  readonly close: () => void;
}

/** One call whose answer is a stream. Only the signal bounds it. A refusal is read as usual. Never throws. */
export async function openCall(transport: Transport, options: Omit<CallOptions, 'timeoutMs'>): Promise<OpenReply | Reply> {
  try {
    const { statusCode: status, headers, body } = await send(transport, options);
    if (status < 400) {
      // Whoever reads the body hears of its errors; closing it early is none.
      body.on('error', () => undefined);
      return { kind: 'open', header: (name) => textHeader(headers[name]), body, close: () => void body.destroy() };
    }
    const text = await readBounded(body, options.maxBytes);
    return status >= 500 ? { kind: 'unreachable' } : { kind: 'answered', status, text };
  } catch {
    return { kind: options.signal.aborted ? 'cancelled' : 'unreachable' };
  }
}

/** Throws when there is no answer. */
function send(transport: Transport, options: Pick<CallOptions, 'method' | 'path' | 'headers' | 'body' | 'signal'>) {
  options.signal.throwIfAborted();
  return request(transport.origin + options.path, {
    dispatcher: transport.dispatcher,
    method: options.method,
    headers: options.body === undefined ? options.headers : { ...options.headers, 'content-type': 'application/json' },
    body: options.body === undefined ? null : JSON.stringify(options.body),
    signal: options.signal,
  });
}

function textHeader(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

async function readBounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error('the answer is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

export interface Refusal {
  readonly status: number;
  /** The stable code of the problem document, if the body is one. */
  readonly code: string | null;
  readonly stop: StopReason | null;
}

/** Reads a refusal. A body that is no problem document has no code. */
export function readRefusal(status: number, text: string): Refusal {
  const problem = problemSchema.pick({ code: true, stop: true }).safeParse(parseJson(text));
  return { status, code: problem.success ? problem.data.code : null, stop: problem.success ? (problem.data.stop ?? null) : null };
}

/** The value of a JSON text; undefined when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
