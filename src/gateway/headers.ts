/**
 * Owns: which headers cross the gateway. Both directions are lists of what may pass: a sandbox's credential, its X-Agent-* headers, cookies
 * and whatever a client library adds never reach a provider, and a provider's cookies and account headers never reach a sandbox.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { LlmApi } from '../contract/agent.ts';

type Headers = Record<string, string>;

const ANTHROPIC_VERSION = '2023-06-01';
/** Routing hints for a provider's prompt cache: ids of a conversation, no words. */
const TO_PROVIDER = ['accept', 'session_id', 'x-session-id', 'x-session-affinity', 'x-client-request-id'];
const TO_ANTHROPIC = ['anthropic-version', 'anthropic-beta'];
const TO_SANDBOX = ['content-type', 'retry-after', 'retry-after-ms', 'x-should-retry'];
const PLAIN_VALUE = /^[\x20-\x7e]{1,1000}$/;

function pick(from: IncomingHttpHeaders, names: readonly string[]): Headers {
  const picked: Headers = {};
  for (const name of names) {
    const value = from[name];
    if (typeof value === 'string' && PLAIN_VALUE.test(value)) picked[name] = value;
  }
  return picked;
}

/** Headers of a request to the provider, with its key. */
export function providerHeaders(api: LlmApi, apiKey: string | null, client: IncomingHttpHeaders): Headers {
  const common = {
    accept: 'text/event-stream, application/json',
    ...pick(client, TO_PROVIDER),
    'accept-encoding': 'identity',
    'content-type': 'application/json',
    'user-agent': 'heph',
  };
  if (api === 'anthropic-messages') {
    const versions = { 'anthropic-version': ANTHROPIC_VERSION, ...pick(client, TO_ANTHROPIC) };
    return { ...common, ...versions, ...(apiKey === null ? {} : { 'x-api-key': apiKey }) };
  }
  return { ...common, ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }) };
}

/** Headers of a provider's answer that a sandbox may see. */
export function sandboxHeaders(provider: IncomingHttpHeaders): Headers {
  return pick(provider, TO_SANDBOX);
}
