/**
 * Owns: reading a request of the loop on any wire: its last question, and what tools have answered since.
 * The situation is the last user message; it begins with `<situation>` and is no question.
 */

interface Item {
  readonly kind: 'user' | 'tool';
  readonly text: string;
}

const DATE_PREFIX = /^\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d [^\]\n]*\]\s*/;

export function readRequestBody(body: unknown): { question: string; toolResults: readonly string[] } {
  const { messages, input } = (body ?? {}) as { messages?: unknown; input?: unknown };
  const items = [...list(messages), ...list(input)].flatMap(itemsOf).filter((item) => !item.text.trimStart().startsWith('<situation>'));
  const asked = items.findLastIndex((item) => item.kind === 'user');
  return {
    question: (items[asked]?.text ?? '').replace(DATE_PREFIX, '').trim(),
    toolResults: items.slice(asked + 1).map((item) => item.text),
  };
}

/** Chat: role tool. Responses: function_call_output. Anthropic: tool_result parts of a user message. */
function itemsOf(message: Record<string, unknown>): Item[] {
  if (message['type'] === 'function_call_output') return [{ kind: 'tool', text: textOf(message['output']) }];
  if (message['role'] === 'tool') return [{ kind: 'tool', text: textOf(message['content']) }];
  if (message['role'] !== 'user') return [];
  if (typeof message['content'] === 'string') return [{ kind: 'user', text: message['content'] }];
  return list(message['content']).flatMap((part): Item[] => {
    if (part['type'] === 'tool_result') return [{ kind: 'tool', text: textOf(part['content']) }];
    return typeof part['text'] === 'string' ? [{ kind: 'user', text: part['text'] }] : [];
  });
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('');
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : [];
}
