/**
 * Owns: what of an attempt's Pi entries its end carries, and how its last message is judged. Pure.
 * Does not own: making the entries (Pi) and storing them (the server, which derives kind and text from them).
 * Rule R7: the end is the only writer of a turn's entries; the question is the server's own.
 */
import { isContextOverflow } from '@earendil-works/pi-ai/utils/overflow';
import type { FailureDetail, PiEntry } from '../src/contract/agent.ts';
import { isBlank } from '../src/kernel/text.ts';
import type { SessionEntry } from './pi.ts';

type MessageEntry = Extract<SessionEntry, { type: 'message' }>;
type Assistant = Extract<MessageEntry['message'], { role: 'assistant' }>;
type AssistantEntry = MessageEntry & { message: Assistant };

export type Judgement =
  | { readonly outcome: 'DONE' }
  | { readonly outcome: 'FAILED'; readonly reason: 'ERROR'; readonly detail: FailureDetail };

/** How a turn that nobody stopped has ended, from its last model answer. */
export function judge(entries: readonly SessionEntry[], overflowed: boolean): Judgement {
  const last = entries.findLast(isAssistant);
  if (last === undefined) return failed('model_error');
  const { message } = last;
  if (message.stopReason === 'error' || message.stopReason === 'aborted') return judgeError(message, overflowed);
  // Pi left a finished answer out itself: it was cut off for lack of room, and shortening the conversation did not help.
  if (omitted(entries).has(last.id)) return failed(overflowed ? 'context_overflow' : 'truncated_answer');
  return isBlank(wordsOf(message)) ? failed('empty_answer') : { outcome: 'DONE' };
}

/** The entries of a turn that was not stopped: a model call that Pi tried again stays out, with the edit that leaves it out. */
export function finishedEntries(entries: readonly SessionEntry[], questionId: string): PiEntry[] {
  const left = omitted(entries);
  return toWire(entries, { questionId, keep: (entry) => !left.has(entry.id) });
}

/**
 * The entries of a stopped turn: its answer so far. A call whose tool never answered is dropped, and a message that has nothing left.
 * A stop can reach the model's stream before it reaches us; then Pi holds the cut-off answer for a failed call, and it is put back.
 */
export function cutOffEntries(entries: readonly SessionEntry[], questionId: string): PiEntry[] {
  const left = omitted(entries);
  const lastKept = entries.findLast((entry) => isAssistant(entry) && !left.has(entry.id) && !isEmpty(entry.message));
  const cut = entries.findLast((entry) => isAssistant(entry) && entry.message.stopReason === 'error' && !isBlank(wordsOf(entry.message)));
  const restored = cut !== undefined && (lastKept === undefined || entries.indexOf(cut) >= entries.indexOf(lastKept)) ? cut.id : null;
  const answered = new Set(
    entries.flatMap((entry) => (entry.type === 'message' && entry.message.role === 'toolResult' ? [entry.message.toolCallId] : [])),
  );
  const whole = entries.map((entry) => (isAssistant(entry) ? withoutOpenCalls(entry, { answered, cut: entry.id === restored }) : entry));
  const keep = (entry: SessionEntry): boolean => {
    if (left.has(entry.id)) return entry.id === restored;
    return !isAssistant(entry) || !isEmpty(entry.message);
  };
  return toWire(whole, { questionId, keep });
}

function failed(detail: FailureDetail): Judgement {
  return { outcome: 'FAILED', reason: 'ERROR', detail };
}

/** Pi's own words for a stream that closed before it said that it was finished. */
const UNFINISHED = /ended (without|before)/i;
/** The gateway's code when it counted this turn's calls itself, those of an earlier attempt included. */
const CALL_LIMIT = /"call_limit"/;

/**
 * Pi says so itself when shortening did not help, but not when the provider refused the shortened conversation within the millisecond in
 * which the summary was stored, or after the clock went back: it compares their times. So the last answer is judged as well.
 */
function judgeError(message: Assistant, overflowed: boolean): Judgement {
  if (overflowed || isContextOverflow(message)) return failed('context_overflow');
  const text = message.errorMessage ?? '';
  if (CALL_LIMIT.test(text)) return failed('call_limit');
  return failed(UNFINISHED.test(text) ? 'truncated_answer' : 'model_error');
}

function isAssistant(entry: SessionEntry): entry is AssistantEntry {
  return entry.type === 'message' && entry.message.role === 'assistant';
}

function wordsOf(message: Assistant): string {
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

function isEmpty(message: Assistant): boolean {
  return isBlank(wordsOf(message)) && !message.content.some((block) => block.type === 'toolCall');
}

/** Ids of what Pi left out of the model's view in this attempt, and of the edits that say so. */
function omitted(entries: readonly SessionEntry[]): Set<string> {
  const own = new Set(entries.map((entry) => entry.id));
  const edits = entries.filter((entry) => entry.type === 'context_edit' && entry.replacement === null && own.has(entry.targetId));
  return new Set(edits.flatMap((edit) => (edit.type === 'context_edit' ? [edit.id, edit.targetId] : [])));
}

function withoutOpenCalls(entry: AssistantEntry, how: { readonly answered: ReadonlySet<string>; readonly cut: boolean }): AssistantEntry {
  const content = entry.message.content.filter((block) => block.type !== 'toolCall' || how.answered.has(block.id));
  if (!how.cut) return content.length === entry.message.content.length ? entry : { ...entry, message: { ...entry.message, content } };
  const { errorMessage: _words, ...message } = entry.message;
  return { ...entry, message: { ...message, content, stopReason: 'aborted' } };
}

/** What the server stores. Model and thinking level are set anew for each turn, so Pi's notes about them stay here. */
function isStored(entry: SessionEntry): boolean {
  if (entry.type === 'message')
    return entry.message.role === 'system' || entry.message.role === 'assistant' || entry.message.role === 'toolResult';
  return entry.type === 'compaction' || entry.type === 'context_edit';
}

/** The kept entries, each linked to the nearest entry before it that the ledger will have. */
function toWire(
  entries: readonly SessionEntry[],
  how: { readonly questionId: string; readonly keep: (entry: SessionEntry) => boolean },
): PiEntry[] {
  const parents = new Map<string, string | null>();
  const wire: PiEntry[] = [];
  for (const entry of entries) {
    const parentId = entry.parentId !== null && parents.has(entry.parentId) ? (parents.get(entry.parentId) ?? null) : entry.parentId;
    if (isStored(entry) && how.keep(entry)) wire.push({ ...entry, parentId } as unknown as PiEntry);
    else if (entry.id !== how.questionId) parents.set(entry.id, parentId);
  }
  return wire;
}
