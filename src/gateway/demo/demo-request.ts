/**
 * Owns: what the demo model reads in a request: the question, what the read tool answered to it, what it may call.
 * The last user message of a turn is the situation, which is no question; the question stands before it and carries a date of ours.
 */
import { type JsonObject, objectsIn, toObject } from '../json.ts';

export interface DemoRequest {
  /** The person's own words; empty when the request holds no question. */
  readonly question: string;
  /** What the tools answered since the question; null when none has been called yet. */
  readonly toolResult: string | null;
  readonly hasReadTool: boolean;
  /** The loop asks for a summary of the conversation, not for an answer. */
  readonly wantsSummary: boolean;
  /** Characters of the whole prompt, to estimate its tokens. */
  readonly promptChars: number;
}

const SITUATION_MARK = '<situation>';
/** `[Thu 2026-10-08 09:12 Europe/Berlin · Slack]`: the server writes it before each question. */
const DATE_PREFIX = /^\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d [^\]\n]{1,80}\]\s*/;

export function readDemoRequest(json: JsonObject): DemoRequest {
  const messages = objectsIn(json['messages']);
  const tools = objectsIn(json['tools']);
  const texts = messages.map((message) => textOf(message['content']));
  const isSituation = (index: number) => texts[index]?.trimStart().startsWith(SITUATION_MARK) === true;
  const asked = messages.findLastIndex((message, index) => message['role'] === 'user' && !isSituation(index));
  const results = texts.filter((_, index) => index > asked && messages[index]?.['role'] === 'tool');
  return {
    question: (texts[asked] ?? '').replace(DATE_PREFIX, '').trim(),
    toolResult: results.length === 0 ? null : results.join('\n'),
    hasReadTool: tools.some((tool) => toObject(tool['function'])?.['name'] === 'read'),
    wantsSummary: tools.length === 0 && !texts.some((_, index) => isSituation(index)),
    promptChars: texts.reduce((sum, text) => sum + text.length, 0),
  };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsIn(content)
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('');
}
