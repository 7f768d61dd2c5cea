/**
 * Owns: making the first question as fast as the second: a dummy turn per API, inside this process, through the same code as a real
 * one. It loads Pi's adapters and compiles what they need.
 * Does not own: anything of a conversation. No byte leaves the process.
 */
import { LLM_APIS, type LlmApi } from '../src/contract/agent.ts';
import { uuidv7 } from '../src/kernel/ids.ts';
import { openPiSession } from './pi-session.ts';
import { createTools } from './tools/index.ts';

const REPLIES: Record<LlmApi, readonly unknown[]> = {
  'openai-completions': [
    { id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: 'ready' }, finish_reason: null }] },
    { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ],
  'openai-responses': [
    { type: 'response.created', response: { id: 'r' } },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { type: 'message', id: 'm', role: 'assistant', status: 'in_progress', content: [] },
    },
    {
      type: 'response.content_part.added',
      output_index: 0,
      item_id: 'm',
      content_index: 0,
      part: { type: 'output_text', text: '', annotations: [] },
    },
    { type: 'response.output_text.delta', output_index: 0, item_id: 'm', content_index: 0, delta: 'ready' },
    {
      type: 'response.completed',
      response: { id: 'r', status: 'completed', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
    },
  ],
  'anthropic-messages': [
    { type: 'message_start', message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ready' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
};

/** Runs the dummy turns. A failure of one costs speed only, so it is not an error. Returns how many were answered. */
export async function warmUp(): Promise<number> {
  let answered = 0;
  for (const api of LLM_APIS) answered += (await askDummy(api)) ? 1 : 0;
  return answered;
}

async function askDummy(api: LlmApi): Promise<boolean> {
  const body = REPLIES[api]
    .map((event) => `event: ${(event as { type?: string }).type ?? 'message'}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('');
  const pi = await openPiSession({
    context: {
      conversationId: uuidv7(),
      questionEntryId: uuidv7(),
      entries: [],
      systemPrompt: 'Warm up.',
      situation: 'Warm up.',
      model: { id: 'warm-up', api, contextTokens: 32_768, outputTokens: 4_096 },
    },
    tools: createTools({ folder: noFolder, bash: false, setprivPath: null }),
    fetch: () => Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } })),
    origin: 'http://localhost',
  });
  try {
    await pi.ask('Are you ready?');
    const last = pi.entries.findLast((entry) => entry.type === 'message' && entry.message.role === 'assistant');
    return last?.type === 'message' && last.message.role === 'assistant' && last.message.stopReason === 'stop';
  } finally {
    pi.close();
  }
}

function noFolder(): never {
  throw new Error('there is no context folder yet');
}
