/**
 * Owns: one stored row as the Pi entry that a model may see: questions and digests with their prefix, marks, what is left of erased entries,
 * and tool results that a later note replaces. Pure.
 * Does not own: the order, the pairing of calls and results, the links (path.ts).
 */
import type { PathRow } from '../../db/context/read-path.ts';
import type { PiEntry } from '../contract/agent.ts';
import { isBlank } from '../kernel/text.ts';
import { blocksOf, callIdOf, messageOf, type PiMessage, textBlock } from './pi-messages.ts';
import { messagePrefix } from './times.ts';

export const STOPPED_MARKER = '[stopped by the developer]';
export const FAILED_MARKER = '[no answer: the turn failed]';
/** Stands where words were that somebody erased. */
export const ERASED_MARKER = '[erased]';

/** A question or a digest as the user message that `session.prompt()` made, or would have made. */
export function questionText(row: Pick<PathRow, 'text' | 'created_at' | 'surface'>, timeZone: string): string {
  return `${messagePrefix(row.created_at, timeZone, row.surface)}\n${row.text ?? ERASED_MARKER}`;
}

/** A question keeps its id, also when it was erased: a summary may say that the kept messages start there. */
export function renderQuestion(row: PathRow, timeZone: string): PiEntry {
  const text = questionText(row, timeZone) + (isFailed(row) ? `\n\n${FAILED_MARKER}` : '');
  const message = { role: 'user', content: [textBlock(text)], timestamp: Date.parse(row.created_at) };
  return { type: 'message', id: row.id, parentId: null, timestamp: row.created_at, message };
}

export function isFailed(row: PathRow): boolean {
  return row.kind === 'QUESTION' && row.status === 'FAILED';
}

/**
 * What is left of an erased answer or tool result: no words, no arguments, no details; but the calls and the ids by which results find them.
 * The same again for what is only a skeleton already.
 */
function skeleton(entry: PiEntry, message: PiMessage): PiEntry {
  const { details: _details, errorMessage: _words, ...rest } = message;
  const calls = blocksOf(message).flatMap((block) => {
    const id = callIdOf(block);
    return id === null ? [] : [{ type: 'toolCall', id, name: block['name'], arguments: {} }];
  });
  return { ...entry, message: { ...rest, content: calls.length > 0 ? calls : [textBlock(ERASED_MARKER)] } };
}

/**
 * The last answer of a stopped turn: the person saw it, so the model must, although Pi drops aborted answers from later requests. Its tool
 * calls go (a stop can leave one without a result), and the mark says that it was cut off.
 */
function keepCutOffAnswer(entry: PiEntry, message: PiMessage): PiEntry {
  const { errorMessage: _words, ...rest } = message;
  const words = blocksOf(message).filter((block) => block.type === 'text');
  // Wires put the blocks of an answer together without a space.
  const mark = words.length > 0 ? `\n\n${STOPPED_MARKER}` : STOPPED_MARKER;
  return { ...entry, message: { ...rest, content: [...words, textBlock(mark)], stopReason: 'stop' } };
}

function isSilent(message: PiMessage): boolean {
  return blocksOf(message).every((block) => callIdOf(block) === null && isBlank(String(block['text'] ?? '')));
}

/** The content that a tool result was replaced by; undefined when it was not. */
export type Notes = ReadonlyMap<string, { readonly editId: string; readonly content: unknown }>;

/** The last edit of each entry counts. Edits that leave their target out are Pi's own business. */
export function notesOf(rows: readonly PathRow[]): Notes {
  const notes = new Map<string, { editId: string; content: unknown }>();
  for (const row of rows) {
    if (row.kind !== 'EDIT' || row.erased || row.payload === null) continue;
    const { targetId, replacement } = JSON.parse(row.payload) as { targetId?: string; replacement?: { content?: unknown } | null };
    if (typeof targetId === 'string' && replacement?.content !== undefined) {
      notes.set(targetId, { editId: row.id, content: replacement.content });
    }
  }
  return notes;
}

/** Pi would put the note there anyway; what it replaces need not travel to the sandbox again with every turn. */
function noted(entry: PiEntry, message: PiMessage, note: unknown): PiEntry {
  const { details: _details, ...rest } = message;
  return { ...entry, message: { ...rest, content: typeof note === 'string' ? [textBlock(note)] : note } };
}

export interface Rendering {
  readonly timeZone: string;
  readonly notes: Notes;
  /** Ids of the last answer of each stopped turn. */
  readonly cutOff: ReadonlySet<string>;
}

/** The entry as the model may see it; null when it would break the request or says nothing. */
export function renderRow(row: PathRow, { timeZone, notes, cutOff }: Rendering): PiEntry | null {
  if (row.kind === 'QUESTION' || row.kind === 'DIGEST') return renderQuestion(row, timeZone);
  if (row.payload === null) return null;
  const stored = JSON.parse(row.payload) as PiEntry;
  const message = messageOf(stored);
  if (message?.role === 'assistant') return renderAnswer(row, stored, cutOff.has(row.id));
  if (message?.role === 'toolResult') {
    if (row.erased) return skeleton(stored, message);
    const note = notes.get(row.id);
    return note ? noted(stored, message, note.content) : stored;
  }
  return row.erased ? null : stored;
}

function renderAnswer(row: PathRow, stored: PiEntry, isCutOff: boolean): PiEntry | null {
  // A stop before the first word leaves nothing that was cut off. What is left of an erased answer does not tell whether it had words.
  if (isCutOff && isSilent(messageOf(stored) as PiMessage)) return null;
  const entry = row.erased ? skeleton(stored, messageOf(stored) as PiMessage) : stored;
  const message = messageOf(entry) as PiMessage;
  if (isCutOff) return keepCutOffAnswer(entry, message);
  // Pi leaves such answers out of its requests, but not the results of their calls.
  if (message.stopReason === 'error' || message.stopReason === 'aborted') return null;
  return blocksOf(message).length === 0 ? null : entry;
}
