/**
 * Owns: what the gateway is told about a provider, and the addresses that follow from it.
 * Does not own: reading the environment (src/config.ts) or the price of a call.
 */
import type { LlmApi } from '../contract/agent.ts';

export interface ProviderConfig {
  readonly api: LlmApi;
  /** With or without `/v1` at its end. A query in it is kept, a user name in it is not used. */
  readonly baseUrl: URL;
  /** null: the provider asks for none (a server on this machine). */
  readonly apiKey: string | null;
}

/** The provider of this server's environment, and the one model that it may be asked for. */
export interface EnvironmentProvider extends ProviderConfig {
  /** The provider's own name of the model. */
  readonly model: string;
}

/** How long a provider may be silent, milliseconds. */
export interface ModelBounds {
  /** From the request to the response headers: HEPH_MENTOR_TURN_MODEL_FIRST_BYTE_TIMEOUT. */
  readonly firstByteTimeoutMs: number;
  /** Between two bytes of a stream: HEPH_MENTOR_TURN_MODEL_IDLE_TIMEOUT. */
  readonly idleTimeoutMs: number;
  /** Between two events that carry content; comments and pings do not count. */
  readonly noContentTimeoutMs: number;
}

export const DEMO_API: LlmApi = 'openai-completions';
export const DEMO_MODEL = 'heph-demo';

/** The built-in model, as the rows of a fresh installation describe it. */
export const DEMO = { api: DEMO_API, providerModel: DEMO_MODEL, contextTokens: 131_072, outputTokens: 8_192 } as const;

/** Where each API listens, below `/v1`. */
export const API_PATHS: Readonly<Record<LlmApi, string>> = {
  'openai-completions': '/chat/completions',
  'openai-responses': '/responses',
  'anthropic-messages': '/messages',
};

/**
 * The address of a provider's API. OpenAI bases usually end in a version (`…/v1`, `…/api/v4`), so only a base without a path gets `/v1`;
 * Anthropic bases usually have none. `beta`: the Anthropic client asked for `?beta=true`.
 */
export function endpointOf(config: ProviderConfig, beta: boolean): URL {
  const url = new URL(config.baseUrl);
  const base = url.pathname.replace(/\/+$/, '');
  const versioned = config.api === 'anthropic-messages' ? base.endsWith('/v1') : base !== '';
  url.pathname = `${base}${versioned ? '' : '/v1'}${API_PATHS[config.api]}`;
  if (beta) url.searchParams.set('beta', 'true');
  url.hash = '';
  url.username = '';
  url.password = '';
  return url;
}
