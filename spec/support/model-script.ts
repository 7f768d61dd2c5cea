/**
 * Owns: what a scripted provider is told to do (spec/support/model-server.ts does it). A script gets each request and says how to answer;
 * a spec steers an answer by holds, never by delays.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { LlmApi } from '../../src/contract/agent.ts';

/** A request as the provider got it. */
export interface Seen {
  /** 1 for the first request of the server. */
  readonly n: number;
  readonly api: LlmApi;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawBody: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: the body of a client under test; specs look at whatever they expect in it
  readonly body: any;
  /** The last question in the request, without the date before it; empty when there is none. */
  readonly question: string;
  /** What tools have answered since the question. */
  readonly toolResults: readonly string[];
  /** Resolves when the caller hangs up before the answer is complete, with the time of it (performance.now()). */
  readonly aborted: Promise<number>;
  /** Resolves when the answer has been sent, as far as its script goes. */
  readonly sent: Promise<void>;
}

export interface ModelUsage {
  /** Tokens that were in no cache. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}

export interface ToolCall {
  readonly name: string;
  readonly args: unknown;
  readonly id?: string;
}

/** One thing that happens in a stream, in order. */
export type Step =
  | { readonly text: string }
  | { readonly tool: ToolCall }
  | { readonly hold: Hold }
  | { readonly comment: string }
  | { readonly ping: true }
  | { readonly error: { readonly type: string; readonly message: string } }
  | { readonly raw: string | Uint8Array };

/**
 * How a stream ends. `finish`: as the wire wants it. `fin`: a clean end of the connection without a finish. `drop`: the connection is reset.
 * `hang`: silence. `keep-alive`: comments for ever. `linger`: finished, but the connection stays open.
 */
export type StreamEnd = 'finish' | 'fin' | 'drop' | 'hang' | 'keep-alive' | 'linger';

export interface StreamReply {
  readonly steps: readonly Step[];
  readonly end?: StreamEnd;
  /** The wire's own word for why the model stopped; derived from the steps when left out. */
  readonly finishReason?: string;
  /** null: the provider reports none. */
  readonly usage?: ModelUsage | null;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly framing?: Framing;
  /** Bytes of one write: the stream is cut anywhere, also inside of a character. */
  readonly cutBytes?: number;
}

export interface Framing {
  readonly eol?: '\n' | '\r\n' | '\r';
  /** `data:x` instead of `data: x`. */
  readonly noSpace?: boolean;
  /** JSON over several `data` lines. */
  readonly multiline?: boolean;
}

/** An answer in one piece, or none at all. */
export interface WholeReply {
  readonly status: number;
  readonly body?: string | object;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export type Reply = StreamReply | WholeReply | { readonly silent: 'hang' | 'drop' } | { readonly before: Hold; readonly reply: Reply };
export type Script = (seen: Seen, n: number) => Reply | Promise<Reply>;

/** A point in an answer where the provider waits for the spec. */
export interface Hold {
  /** Resolves when the provider has come here. */
  readonly arrived: Promise<void>;
  release(): void;
  /** For the server. */
  pass(): Promise<void>;
}

export function hold(): Hold {
  const arrival = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  return {
    arrived: arrival.promise,
    release: () => released.resolve(),
    pass: () => {
      arrival.resolve();
      return released.promise;
    },
  };
}

export const DEFAULT_USAGE: ModelUsage = { input: 100, output: 10 };

/** Text in deltas of `chars` code points. */
export function textSteps(text: string, chars = 12): readonly Step[] {
  const points = [...text];
  return Array.from({ length: Math.ceil(points.length / chars) }, (_, i) => ({ text: points.slice(i * chars, (i + 1) * chars).join('') }));
}

/** A streamed answer that ends well. */
export function says(text: string, more: Omit<StreamReply, 'steps'> = {}): StreamReply {
  return { steps: textSteps(text), ...more };
}

/** Calls one tool. */
export function calls(name: string, args: unknown): StreamReply {
  return { steps: [{ tool: { name, args } }] };
}

export interface AnswerOptions {
  /** First read INDEX.md, as a normal model does on this product. */
  readonly withTools?: boolean;
}

/** A model that behaves: each answer holds its question's words, so that answers can be matched to questions. */
export function answer(words: (question: string) => string = (question) => `You asked: ${question}`, options: AnswerOptions = {}): Script {
  return (seen) => {
    if (options.withTools && seen.toolResults.length === 0) return calls('read', { path: 'INDEX.md' });
    return says(words(seen.question));
  };
}
