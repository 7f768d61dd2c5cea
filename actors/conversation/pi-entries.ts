/**
 * Owns: what the server makes of the Pi entries that an end carries. bash can read the credential, so an end may be forged:
 * kind and text are derived here, never taken from the sender, and only kinds that a loop may add are accepted.
 * rule: R7 (a failed end stores only its summary)
 */
import type { CopyOfWords, NewEntry } from '../../db/ledger/end-turn.ts';
import type { PiEntry } from '../../src/contract/agent.ts';
import { type EntryId, isUuid } from '../../src/kernel/ids.ts';
import { piSkeleton } from '../../src/kernel/pi-skeleton.ts';
import { isBlank, wellFormed, wellFormedJson } from '../../src/kernel/text.ts';

export type DerivedEntries =
  | { readonly kind: 'entries'; readonly entries: readonly NewEntry[] }
  | { readonly kind: 'refused'; readonly why: string };

interface TextBlock {
  readonly type: 'text';
  readonly text: string;
}

function isTextBlock(block: unknown): block is TextBlock {
  return (
    typeof block === 'object' && block !== null && (block as TextBlock).type === 'text' && typeof (block as TextBlock).text === 'string'
  );
}

/** The words of a Pi message: its text blocks, one paragraph each; null when it has none. */
export function messageText(content: unknown): string | null {
  const blocks =
    typeof content === 'string' ? [content] : Array.isArray(content) ? content.filter(isTextBlock).map((block) => block.text) : [];
  const text = wellFormed(blocks.filter((block) => !isBlank(block)).join('\n\n'));
  return isBlank(text) ? null : text;
}

/** Kind and words of one entry; null for an entry that is not stored (Pi's copy of the question, model and thinking changes). */
function derive(entry: PiEntry): Pick<NewEntry, 'kind' | 'text'> | null {
  if (entry.type === 'context_edit') return { kind: 'EDIT', text: null };
  if (entry.type === 'compaction') return { kind: 'SUMMARY', text: null };
  if (entry.type !== 'message') return null;
  const message = entry['message'];
  if (typeof message !== 'object' || message === null) return null;
  const { role, content } = message as { role?: unknown; content?: unknown };
  if (role === 'assistant') return { kind: 'ANSWER', text: messageText(content) };
  if (role === 'toolResult') return { kind: 'TOOL_RESULT', text: null };
  if (role === 'system') return { kind: 'SYSTEM', text: null };
  return null;
}

/** The tool whose results repeat the words of other entries and name them by id. */
const SEARCH_TOOL = 'search_conversation';
/** Ids that a search result may name. Those of its hits come first; more than its hits are ids in their words. */
const SOURCES_MAX = 1_000;
const IDS = /[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;

/** What a summary or a search result becomes when words that it repeats are gone; undefined for all others. */
function copyOf(entry: PiEntry, kind: NewEntry['kind'], payload: string): CopyOfWords | undefined {
  if (kind === 'SUMMARY') return { skeleton: null, sourceIds: null };
  const { toolName } = (entry['message'] ?? {}) as { toolName?: unknown };
  if (kind !== 'TOOL_RESULT' || toolName !== SEARCH_TOOL) return undefined;
  const named = new Set(payload.match(IDS));
  named.delete(entry.id);
  return { skeleton: piSkeleton(payload), sourceIds: [...named].slice(0, SOURCES_MAX) as EntryId[] };
}

/** The first entry that a summary keeps; null when it names none. */
function firstKeptId(entry: PiEntry): EntryId | null {
  const id = entry['firstKeptEntryId'];
  return isUuid(id) ? (id as EntryId) : null;
}

/** `failed`: only summaries are kept. */
export function deriveEntries(entries: readonly PiEntry[], failed: boolean): DerivedEntries {
  const derived: NewEntry[] = [];
  const seen = new Set<string>();
  for (const entry of entries) {
    const shape = derive(entry);
    if (!shape || (failed && shape.kind !== 'SUMMARY')) continue;
    if (!isUuid(entry.id)) return { kind: 'refused', why: 'an entry id is not a uuid' };
    if (seen.has(entry.id)) return { kind: 'refused', why: 'two entries have the same id' };
    seen.add(entry.id);
    const payload = wellFormedJson(JSON.stringify(entry));
    const copy = copyOf(entry, shape.kind, payload);
    const kept = shape.kind === 'SUMMARY' ? { firstKeptId: firstKeptId(entry) } : {};
    derived.push({ ...shape, ...kept, id: entry.id as EntryId, payload, ...(copy ? { copy } : {}) });
  }
  return { kind: 'entries', entries: derived };
}

/** True when at least one answer has words. */
export function hasAnswer(entries: readonly NewEntry[]): boolean {
  return entries.some((entry) => entry.kind === 'ANSWER' && entry.text !== null);
}
