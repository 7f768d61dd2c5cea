/**
 * Owns: rendering stored rows as a Pi session path (seed, "The path"). Pure: the same rows give the same bytes.
 * The stored payload stays as Pi wrote it; what is changed on the way to the model is said here: parent links, markers, cut-off answers,
 * and messages that would break a provider's request (empty answers, tool results without their call).
 * rule: R13
 */
import type { PathRow } from '../../db/context/read-path.ts';
import type { PiEntry } from '../contract/agent.ts';
import { messagePrefix } from './times.ts';

export const STOPPED_MARKER = '[stopped by the developer]';
export const FAILED_MARKER = '[no answer: the turn failed]';
const ERASED_QUESTION = '[erased]';

interface Block {
  readonly type: string;
  readonly [key: string]: unknown;
}

interface Message {
  readonly role?: string;
  readonly content?: unknown;
  readonly stopReason?: string;
  readonly toolCallId?: string;
  readonly [key: string]: unknown;
}

function blocksOf(message: Message): readonly Block[] {
  if (typeof message.content === 'string') return [{ type: 'text', text: message.content }];
  return Array.isArray(message.content) ? (message.content as Block[]) : [];
}

function messageOf(entry: PiEntry): Message | null {
  return entry.type === 'message' ? ((entry['message'] as Message | undefined) ?? null) : null;
}

/** A question as the user message that `session.prompt()` made, or would have made. */
export function questionText(row: Pick<PathRow, 'text' | 'created_at' | 'surface'>, timeZone: string): string {
  return `${messagePrefix(row.created_at, timeZone, row.surface)}\n${row.text ?? ERASED_QUESTION}`;
}

function question(row: PathRow, timeZone: string): PiEntry {
  const marker = row.status === 'FAILED' ? `\n\n${FAILED_MARKER}` : '';
  const text = questionText(row, timeZone) + marker;
  const message = { role: 'user', content: [{ type: 'text', text }], timestamp: Date.parse(row.created_at) };
  return { type: 'message', id: row.id, parentId: null, timestamp: row.created_at, message };
}

/**
 * The last answer of a stopped turn: the person saw it, so the model must, although Pi drops aborted answers from later requests. Its tool
 * calls go (a stop can leave one without a result), and the mark says that it was cut off.
 */
function keepCutOffAnswer(entry: PiEntry, message: Message): PiEntry {
  const { errorMessage: _words, ...rest } = message as Message & { errorMessage?: unknown };
  const words = blocksOf(message).filter((block) => block.type === 'text');
  const content = [...words, { type: 'text', text: STOPPED_MARKER }];
  return { ...entry, message: { ...rest, content, stopReason: 'stop' } };
}

/** Ids of the last answer of each stopped turn. */
function cutOffAnswers(rows: readonly PathRow[]): ReadonlySet<string> {
  const last = new Map<string, string>();
  for (const row of rows) if (row.kind === 'ANSWER' && row.status === 'STOPPED' && row.turn_id) last.set(row.turn_id, row.id);
  return new Set(last.values());
}

function toolCallIds(entry: PiEntry): readonly string[] {
  const message = messageOf(entry);
  if (message?.role !== 'assistant') return [];
  return blocksOf(message).flatMap((block) => (block.type === 'toolCall' && typeof block['id'] === 'string' ? [block['id']] : []));
}

/** The entry as the model may see it; null when it would break the request or says nothing. */
function rendered(row: PathRow, timeZone: string, isCutOff: boolean): PiEntry | null {
  if (row.kind === 'QUESTION' || row.kind === 'DIGEST') return question(row, timeZone);
  if (row.payload === null) return null;
  const entry = JSON.parse(row.payload) as PiEntry;
  const message = messageOf(entry);
  if (message?.role !== 'assistant') return entry;
  if (isCutOff) return keepCutOffAnswer(entry, message);
  return blocksOf(message).length === 0 ? null : entry;
}

/** Removes tool results whose call is not on the path and edits whose target is not. */
function wellPaired(entries: readonly PiEntry[]): PiEntry[] {
  const calls = new Set(entries.flatMap(toolCallIds));
  const ids = new Set(entries.map((entry) => entry.id));
  return entries.filter((entry) => {
    const message = messageOf(entry);
    if (message?.role === 'toolResult') return typeof message.toolCallId === 'string' && calls.has(message.toolCallId);
    return entry.type !== 'context_edit' || ids.has(entry['targetId'] as string);
  });
}

/**
 * The path before the current question, as a well-formed chain: each entry's parent is the one before it, the first has none.
 * Pi takes the last row as its leaf and silently drops what is above a missing parent, so the links are made here, not trusted.
 */
export function buildPath(rows: readonly PathRow[], timeZone: string): PiEntry[] {
  const cutOff = cutOffAnswers(rows);
  const entries = wellPaired(rows.flatMap((row) => rendered(row, timeZone, cutOff.has(row.id)) ?? []));
  return entries.map((entry, index) => ({ ...entry, parentId: entries[index - 1]?.id ?? null }));
}
