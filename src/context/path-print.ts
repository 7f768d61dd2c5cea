/**
 * Owns: the print of a path, and where two prints of one conversation differ without a declared reason. Pure.
 * rule: R13: turn n+1 starts with exactly the bytes of turn n up to the first entry touched by a declared change: a read note, a summary, an
 * erasure, an edit, a stop or failure marker; another time zone of the account; an answer that was written before a thread's parent meanwhile.
 */
import { createHash } from 'node:crypto';
import type { Path } from './path.ts';

/** Bytes of a hash that are kept: enough to see a change, too few to guess words. */
const HASH_BYTES = 8;
const ID_BYTES = 16;
/** Entries of a print: with a summary in time a path has some hundreds. Of a longer one the beginning is compared. */
export const PRINT_ENTRIES_MAX = 2_000;
/** One entry of a stored print. */
export const PRINT_ENTRY_BYTES = ID_BYTES + 2 * HASH_BYTES;

export interface EntryPrint {
  readonly id: string;
  /** Of the bytes that were given out. */
  readonly bytes: string;
  /** Of what was declared about it. */
  readonly declared: string;
}

export interface PathPrint {
  readonly timeZone: string;
  readonly summaryId: string | null;
  readonly system: string;
  readonly entries: readonly EntryPrint[];
}

/** What was declared since the earlier print, beside what the prints themselves say. */
export interface Declared {
  readonly erasedIds: ReadonlySet<string>;
  /** Entries that were written since and may stand before older ones. */
  readonly addedIds: ReadonlySet<string>;
}

/** The first entry of the earlier path that differs without a reason. */
export interface PathBreak {
  readonly index: number;
  readonly entryId: string;
}

function hash(text: string): string {
  return createHash('sha256')
    .update(text)
    .digest('hex')
    .slice(0, HASH_BYTES * 2);
}

/** The question, as the path's last entry, is part of the print: the next turn repeats it. */
export function printOf(path: Path, { timeZone, systemPrompt }: { readonly timeZone: string; readonly systemPrompt: string }): PathPrint {
  const entries = path.entries.slice(0, PRINT_ENTRIES_MAX).map(({ entry, declared }) => ({
    id: entry.id,
    bytes: hash(JSON.stringify(entry)),
    declared: hash(declared),
  }));
  return { timeZone, summaryId: path.summaryId, system: hash(systemPrompt), entries };
}

/** null: `current` starts with the bytes of `previous`, up to the first declared change. */
export function firstBreak(previous: PathPrint, current: PathPrint, declared: Declared): PathBreak | null {
  if (previous.timeZone !== current.timeZone || previous.summaryId !== current.summaryId) return null;
  const index = previous.entries.findIndex((entry, at) => {
    const now = current.entries[at];
    return now?.id !== entry.id || now.bytes !== entry.bytes;
  });
  const before = previous.entries[index];
  if (!before) return null;
  const now = current.entries[index];
  const isDeclared =
    now?.id === before.id
      ? now.declared !== before.declared
      : declared.erasedIds.has(before.id) || (now !== undefined && declared.addedIds.has(now.id));
  return isDeclared ? null : { index, entryId: before.id };
}

export function encodeEntries(entries: readonly EntryPrint[]): Buffer {
  return Buffer.from(entries.map(({ id, bytes, declared }) => id.replaceAll('-', '') + bytes + declared).join(''), 'hex');
}

export function decodeEntries(stored: Buffer): EntryPrint[] {
  const count = Math.floor(stored.length / PRINT_ENTRY_BYTES);
  return Array.from({ length: count }, (_, at) => {
    const hex = stored.toString('hex', at * PRINT_ENTRY_BYTES, (at + 1) * PRINT_ENTRY_BYTES);
    const id = hex.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    return { id, bytes: hex.slice(32, 48), declared: hex.slice(48, 64) };
  });
}
