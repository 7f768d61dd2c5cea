/**
 * Owns: the bodies that a stub runner sends: a model request as large as Pi's would be, and an end with the entries that Pi would have made.
 */
import type { ContextResponse, PiEntry, TurnEndRequest } from '../../src/contract/agent.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { ANSWER_PIECES } from './question.ts';

const ANSWER = ANSWER_PIECES.join('');
const TOOL_CALL = { type: 'toolCall', id: 'call_1', name: 'read', arguments: { path: 'INDEX.md' } };
/** About the size of the declarations of the runner's two tools. */
const TOOLS = ['read', 'bash'].map((name) => ({
  type: 'function',
  function: {
    name,
    description: 'Reads a file, or runs a command, in the folder of this conversation. '.repeat(8),
    parameters: { type: 'object', properties: { path: { type: 'string', description: 'Where it is.' } }, required: ['path'] },
  },
}));

interface StoredMessage {
  readonly role: string;
  readonly content: unknown;
}

/** The whole path, the question and the situation, streamed. */
export function modelRequest(context: ContextResponse): object {
  const path = context.entries.flatMap((entry) => {
    const message = entry['message'] as StoredMessage | undefined;
    return message?.role === 'user' || message?.role === 'assistant' ? [{ role: message.role, content: wordsOf(message.content) }] : [];
  });
  const messages = [
    { role: 'system', content: context.systemPrompt },
    ...path,
    { role: 'user', content: context.prompt },
    { role: 'user', content: context.situation },
  ];
  return { model: context.model.id, stream: true, messages, tools: TOOLS, max_completion_tokens: context.model.outputTokens };
}

function wordsOf(content: unknown): string {
  if (typeof content === 'string') return content;
  const blocks = Array.isArray(content) ? (content as readonly { readonly text?: string }[]) : [];
  return blocks.map((block) => block.text ?? '').join('') || '(a tool call)';
}

/** One answer; with more model calls, a tool call and its result before it for each. */
export function endOf(context: ContextResponse, modelCalls: number): TurnEndRequest & { lastPartial: { text: string; stage: null } } {
  const entries: PiEntry[] = [];
  const add = (message: StoredMessage & Readonly<Record<string, unknown>>): void => {
    const parentId = entries.at(-1)?.id ?? context.questionEntryId;
    entries.push({ type: 'message', id: uuidv7(), parentId, timestamp: new Date().toISOString(), message });
  };
  for (let nth = 1; nth < modelCalls; nth++) {
    add(assistant([TOOL_CALL], 'toolUse'));
    add({
      role: 'toolResult',
      toolCallId: TOOL_CALL.id,
      toolName: 'read',
      content: [{ type: 'text', text: 'Nothing here.' }],
      isError: false,
    });
  }
  add(assistant([{ type: 'text', text: ANSWER }], 'stop'));
  return { outcome: 'DONE', entries, lastPartial: { text: ANSWER, stage: null } };
}

function assistant(content: readonly object[], stopReason: string): StoredMessage & Readonly<Record<string, unknown>> {
  const usage = { input: 100, output: 120, cacheRead: 0, cacheWrite: 0, totalTokens: 220 };
  return {
    role: 'assistant',
    content,
    api: 'openai-completions',
    provider: 'heph',
    model: 'heph',
    usage,
    stopReason,
    timestamp: Date.now(),
  };
}
