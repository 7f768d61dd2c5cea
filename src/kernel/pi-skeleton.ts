/**
 * Owns: what is left of a Pi entry whose words are erased (seed "The path": "An erased answer or tool result keeps a Pi skeleton, so no tool
 * call loses its result"). Pure; the result is built from what is known to hold no words, never by removing what does.
 */

type Fields = Readonly<Record<string, unknown>>;

const STOP_REASONS = new Set(['stop', 'length', 'toolUse', 'error', 'aborted']);
const APIS = new Set(['openai-completions', 'openai-responses', 'anthropic-messages']);
const COUNTERS = ['input', 'output', 'cacheRead', 'cacheWrite', 'totalTokens', 'total'] as const;
/** Ids and names that pair a call with its result: visible ASCII without spaces. */
const NAME = /^[\x21-\x7e]{1,512}$/;
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]{1,20}Z$/;

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function nameOf(value: unknown): string | null {
  return typeof value === 'string' && NAME.test(value) ? value : null;
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function counters(value: unknown): Record<string, number> {
  const fields = fieldsOf(value);
  return Object.fromEntries(COUNTERS.filter((name) => name in fields).map((name) => [name, numberOf(fields[name])]));
}

/** The calls of an answer without their arguments; a call that cannot be paired is left out. */
function callsOf(content: unknown): object[] {
  const blocks = Array.isArray(content) ? content.map(fieldsOf) : [];
  return blocks.flatMap((block) => {
    const [id, name] = [nameOf(block['id']), nameOf(block['name'])];
    return block['type'] === 'toolCall' && id !== null && name !== null ? [{ type: 'toolCall', id, name, arguments: {} }] : [];
  });
}

/** `usage` stays: Pi reads the size of the conversation from its last answer. */
function answerOf(message: Fields): object {
  const { usage, stopReason, api } = message;
  return {
    role: 'assistant',
    content: callsOf(message['content']),
    ...(typeof api === 'string' && APIS.has(api) ? { api } : {}),
    ...{ provider: 'erased', model: 'erased' },
    usage: { ...counters(usage), cost: counters(fieldsOf(usage)['cost']) },
    stopReason: typeof stopReason === 'string' && STOP_REASONS.has(stopReason) ? stopReason : 'stop',
    timestamp: numberOf(message['timestamp']),
  };
}

function resultOf(message: Fields): object | null {
  const [toolCallId, toolName] = [nameOf(message['toolCallId']), nameOf(message['toolName'])];
  if (toolCallId === null || toolName === null) return null;
  const isError = message['isError'] === true;
  return { role: 'toolResult', toolCallId, toolName, content: [], isError, timestamp: numberOf(message['timestamp']) };
}

/**
 * The skeleton of an answer or a tool result, as JSON; null for an entry that needs none (a summary, an edit, a question).
 * @param payload the Pi entry as it is stored
 */
export function piSkeleton(payload: string | null): string | null {
  const entry = fieldsOf(payload === null ? null : JSON.parse(payload));
  const message = fieldsOf(entry['message']);
  const kept = message['role'] === 'assistant' ? answerOf(message) : message['role'] === 'toolResult' ? resultOf(message) : null;
  const id = nameOf(entry['id']);
  if (entry['type'] !== 'message' || kept === null || id === null) return null;
  const { timestamp } = entry;
  const at = typeof timestamp === 'string' && TIME.test(timestamp) ? timestamp : '1970-01-01T00:00:00.000Z';
  return JSON.stringify({ type: 'message', id, parentId: nameOf(entry['parentId']), timestamp: at, message: kept });
}
