/**
 * Owns: a provider that is reached over HTTP. undici with an agent of our own: its timeouts are set from ours, it follows no redirect, it
 * decodes nothing, and it repeats nothing (a repeated model call would be billed twice).
 */
import type { LookupFunction } from 'node:net';
import { Agent, request } from 'undici';
import { providerHeaders } from './headers.ts';
import { endpointOf, type ModelBounds, type ProviderConfig } from './model-config.ts';
import { type Provider, type ProviderReply, type ProviderRequest, ProviderStalled, ProviderUnreachable } from './provider.ts';

const CONNECT_TIMEOUT_MAX_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;

export class HttpProvider implements Provider {
  readonly api;
  readonly #config: ProviderConfig;
  readonly #bounds: ModelBounds;
  readonly #agent: Agent;

  /** `lookup` judges where the provider's name leads; without it the address is trusted. */
  constructor(config: ProviderConfig, bounds: ModelBounds, lookup?: LookupFunction) {
    this.api = config.api;
    this.#config = config;
    this.#bounds = bounds;
    this.#agent = new Agent({
      connect: { timeout: Math.min(CONNECT_TIMEOUT_MAX_MS, bounds.firstByteTimeoutMs), ...(lookup ? { lookup } : {}) },
      headersTimeout: bounds.firstByteTimeoutMs,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      allowH2: false,
    });
  }

  async send({ json, headers, beta, signal }: ProviderRequest): Promise<ProviderReply> {
    try {
      const reply = await request(endpointOf(this.#config, beta), {
        dispatcher: this.#agent,
        method: 'POST',
        headers: providerHeaders(this.api, this.#config.apiKey, headers),
        body: Buffer.from(JSON.stringify(json)),
        signal,
        headersTimeout: this.#bounds.firstByteTimeoutMs,
        bodyTimeout: 0,
      });
      const { statusCode: status, headers: replyHeaders, body } = reply;
      return { status, headers: replyHeaders, body, discard: () => void body.on('error', () => undefined).destroy() };
    } catch (error) {
      const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
      if (code === 'UND_ERR_HEADERS_TIMEOUT') throw new ProviderStalled('no response headers in time', { cause: error });
      throw new ProviderUnreachable('no connection, or it was closed before the answer', { cause: error });
    }
  }

  retire(): void {
    // It can only fail when it is closed already.
    this.#agent.close().catch(() => undefined);
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}
