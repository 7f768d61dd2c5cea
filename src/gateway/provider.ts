/**
 * Owns: the seam between a model call and whoever answers it. There is one Provider per connection: a breaker, a price or a second provider
 * wraps or replaces this object and nothing else.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { LlmApi } from '../contract/agent.ts';
import type { JsonObject } from './json.ts';

export interface ProviderRequest {
  /** The request after the policy. */
  readonly json: JsonObject;
  /** Headers of the sandbox's request; a provider forwards only what headers.ts allows. */
  readonly headers: IncomingHttpHeaders;
  /** The Anthropic client asked for its beta endpoint. */
  readonly beta: boolean;
  /** Aborted when the call is cut: whatever the provider does for it must end at once. */
  readonly signal: AbortSignal;
}

export interface ProviderReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Bytes as they come. Leaving the loop early, or the request's signal, ends the provider's side. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Ends the provider's side of a body that nobody will read. */
  discard(): void;
}

export interface Provider {
  readonly api: LlmApi;
  /** Resolves with the response headers. Rejects with ProviderUnreachable or ProviderStalled. */
  send(request: ProviderRequest): Promise<ProviderReply>;
  /** No new call will come: ends when those in flight have. */
  retire(): void;
  /** Ends what is left. */
  close(): Promise<void>;
}

/** The provider could not be reached, or hung up before it answered. */
export class ProviderUnreachable extends Error {
  override readonly name = 'ProviderUnreachable';
}

/** The provider took the request and sent no response headers in time. */
export class ProviderStalled extends Error {
  override readonly name = 'ProviderStalled';
}
