/**
 * Owns: a path from stored rows (seed, "The path"). Pure: the same rows give the same bytes.
 * The stored payload stays as Pi wrote it; what is changed on the way to the model is said here and in render.ts: where a summary stands,
 * which calls and results are left out because they lack each other, and the links.
 * rule: R13
 */
import type { PathRow } from '../../db/context/read-path.ts';
import type { PiEntry } from '../contract/agent.ts';
import { blocksOf, callIdOf, messageOf, type PiMessage } from './pi-messages.ts';
import { isFailed, notesOf, type Rendering, renderRow } from './render.ts';

/** An entry as it is given out, and what was declared about it: its bytes may differ from turn to turn only when this differs. */
export interface PathEntry {
  readonly entry: PiEntry;
  readonly declared: string;
  /** When the row was written. */
  readonly writtenAt: string;
}

export interface Path {
  readonly entries: readonly PathEntry[];
  /** The summary that it starts from. */
  readonly summaryId: string | null;
  /** Erased rows, those that are left out too. */
  readonly erasedIds: readonly string[];
}

interface Piece {
  readonly row: PathRow;
  readonly entry: PiEntry;
  /** It differs because of what is not on the path any more: calls without results, a summary whose first kept message is gone. */
  readonly lacks: boolean;
}

/** Ids of the last answer of each stopped turn. */
function cutOffAnswers(rows: readonly PathRow[]): ReadonlySet<string> {
  const last = new Map<string, string>();
  for (const row of rows) if (row.kind === 'ANSWER' && row.status === 'STOPPED' && row.turn_id) last.set(row.turn_id, row.id);
  return new Set(last.values());
}

/**
 * The order of Pi's session. It differs from path order in one thing: the server writes the question when it is asked, and the loop may write a
 * summary before it puts the question; such a summary follows something older than its turn, and stands before the question.
 * Older summaries say nothing any more, and erased ones must not.
 */
function inSessionOrder(rows: readonly PathRow[]): readonly PathRow[] {
  const newest = rows.findLast((row) => row.kind === 'SUMMARY' && !row.erased && row.payload !== null);
  const without = rows.filter((row) => row.kind !== 'SUMMARY');
  if (!newest) return without;
  const turn = rows.filter((row) => row.turn_id === newest.turn_id);
  const { parentId } = JSON.parse(newest.payload as string) as PiEntry;
  const within = turn.some((row) => row.id === parentId);
  const followed = within ? rows.slice(0, rows.indexOf(newest)).findLast((row) => row.kind !== 'SUMMARY') : null;
  const at = followed ? without.indexOf(followed) + 1 : without.indexOf(turn[0] as PathRow);
  return [...without.slice(0, Math.max(at, 0)), newest, ...without.slice(Math.max(at, 0))];
}

/** Each call has its result after it, and each result its call before it, up to the next message that is no result. What lacks the other goes. */
function paired(pieces: readonly Piece[]): Piece[] {
  const kept: (Piece | null)[] = [...pieces];
  let caller = -1;
  let open = new Set<string>();
  const close = (): void => {
    if (caller >= 0 && open.size > 0) kept[caller] = withoutCalls(pieces[caller] as Piece, open);
    open = new Set();
    caller = -1;
  };
  for (const [at, { entry }] of pieces.entries()) {
    const message = messageOf(entry);
    if (message?.role === 'toolResult') {
      if (!open.delete(String(message.toolCallId))) kept[at] = null;
    } else if (message?.role === 'assistant' || message?.role === 'user') {
      close();
      if (message.role === 'assistant') {
        caller = at;
        open = new Set(blocksOf(message).flatMap((block) => callIdOf(block) ?? []));
      }
    }
  }
  close();
  return kept.filter((piece): piece is Piece => piece !== null);
}

/** null: nothing is left of the answer. */
function withoutCalls(piece: Piece, ids: ReadonlySet<string>): Piece | null {
  const message = messageOf(piece.entry) as PiMessage;
  const content = blocksOf(message).filter((block) => !ids.has(callIdOf(block) ?? ''));
  if (content.length === 0) return null;
  const stopReason = content.some((block) => callIdOf(block) !== null) ? message.stopReason : 'stop';
  return { ...piece, entry: { ...piece.entry, message: { ...message, content, stopReason } }, lacks: true };
}

/** Edits of what is not on the path (any more), or must not be read, say nothing. */
function withoutIdleEdits(pieces: readonly Piece[]): Piece[] {
  const editable = new Set(pieces.filter(({ row }) => !row.erased).map(({ entry }) => entry.id));
  return pieces.filter(({ entry }) => entry.type !== 'context_edit' || editable.has(String(entry['targetId'])));
}

/** A summary whose first kept message is not on the path (any more) keeps from the next one that is; Pi would drop all of them without a word. */
function anchored(pieces: readonly Piece[]): Piece[] {
  const at = pieces.findIndex(({ entry }) => entry.type === 'compaction');
  const summary = pieces[at];
  if (!summary || pieces.slice(0, at).some(({ entry }) => entry.id === summary.entry['firstKeptEntryId'])) return [...pieces];
  const first = pieces.slice(0, at).find(({ entry }) => messageOf(entry)?.role !== 'system');
  const moved = { ...summary, entry: { ...summary.entry, firstKeptEntryId: (first ?? summary).entry.id }, lacks: true };
  return pieces.with(at, moved);
}

/** What explains that this entry may look different from one turn to the next. */
function declaredOf({ row, lacks }: Piece, { notes, cutOff }: Rendering, leftOut: readonly PathRow[]): string {
  const edited = row.kind === 'QUESTION' || row.kind === 'DIGEST' ? row.edited_at : null;
  const gone = lacks ? leftOut.filter((one) => row.kind === 'SUMMARY' || one.turn_id === row.turn_id).map((one) => one.id) : [];
  const marks = [edited, row.erased && 'erased', isFailed(row) && 'failed', cutOff.has(row.id) && 'stopped', notes.get(row.id)?.editId];
  return [...marks.filter(Boolean), ...gone].join(' ');
}

/**
 * The path as a well-formed chain: each entry's parent is the one before it, the first has none. Pi takes the last row as its leaf and silently
 * drops what is above a missing parent, so the links are made here, not trusted. `rows` are in path order.
 */
export function renderPath(rows: readonly PathRow[], timeZone: string): Path {
  const rendering = { timeZone, notes: notesOf(rows), cutOff: cutOffAnswers(rows) };
  const pieces = inSessionOrder(rows).flatMap((row): Piece[] => {
    const entry = renderRow(row, rendering);
    return entry ? [{ row, entry, lacks: false }] : [];
  });
  const chain = anchored(withoutIdleEdits(paired(pieces)));
  const shown = new Set(chain.map(({ row }) => row.id));
  const erased = rows.filter((row) => row.erased);
  const leftOut = erased.filter((row) => !shown.has(row.id));
  return {
    entries: chain.map((piece, index) => ({
      entry: { ...piece.entry, parentId: chain[index - 1]?.entry.id ?? null },
      declared: declaredOf(piece, rendering, leftOut),
      writtenAt: piece.row.created_at,
    })),
    summaryId: chain.find(({ entry }) => entry.type === 'compaction')?.entry.id ?? null,
    erasedIds: erased.map((row) => row.id),
  };
}

export function buildPath(rows: readonly PathRow[], timeZone: string): PiEntry[] {
  return renderPath(rows, timeZone).entries.map(({ entry }) => entry);
}
