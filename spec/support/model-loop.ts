/**
 * Owns: calling a model as the loop does, with the client library of each wire, through a gateway.
 */
import { stream as anthropicMessages } from '@earendil-works/pi-ai/api/anthropic-messages';
import { stream as openAiCompletions } from '@earendil-works/pi-ai/api/openai-completions';
import { stream as openAiResponses } from '@earendil-works/pi-ai/api/openai-responses';
import type { LlmApi } from '../../src/contract/agent.ts';
import type { SeededAttempt } from './model-attempt.ts';
import { attemptHeaders, type GatewayRig } from './model-gateway.ts';

/** Where each wire is served, below `/v1`. */
export const API_PATHS = {
  'openai-completions': '/chat/completions',
  'openai-responses': '/responses',
  'anthropic-messages': '/messages',
} as const;

/** Asks one question and resolves with the message that the loop would store, also when the call failed. */
export async function askWithPi(rig: GatewayRig, attempt: SeededAttempt, api: LlmApi) {
  const root = `${rig.url}/internal/llm`;
  const baseUrl = api === 'anthropic-messages' ? root : `${root}/v1`;
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const model = {
    id: 'heph',
    name: 'heph',
    api,
    provider: 'server',
    baseUrl,
    reasoning: false,
    input: ['text'],
    cost,
    contextWindow: 100_000,
    maxTokens: 1_000,
  };
  const context = { messages: [{ role: 'user', content: 'why?', timestamp: 0 }] };
  const streams = { 'openai-completions': openAiCompletions, 'openai-responses': openAiResponses, 'anthropic-messages': anthropicMessages };
  rig.admit(attempt);
  return streams[api](model as never, context as never, { headers: attemptHeaders(attempt) } as never).result();
}
