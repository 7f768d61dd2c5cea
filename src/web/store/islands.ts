/**
 * Owns: an older piece of a conversation that is loaded around one message, apart from the newest piece: how it comes, grows and goes.
 * Does not own: reading it (chat/opener.ts), or where the gap behind it is drawn (ui/Chunk.tsx).
 * - There is one island at most in a conversation. It becomes a part of the newest piece as soon as nothing lies between them.
 */
import type { Entry, EntryPage } from '../../contract/web.ts';
import { applyPageTurns } from './pages.ts';
import { type ChatAction, type ChatState, type Island, type LoadedRange, withRange } from './state.ts';

type Of<T extends ChatAction['type']> = Extract<ChatAction, { type: T }>;

/** Whether a page that leads towards the end has arrived at the newest piece. */
function meets(page: EntryPage, { nextBefore }: LoadedRange): boolean {
  const newest = page.entries.at(-1)?.seq;
  return page.nextAfter === null || nextBefore === null || (newest !== undefined && newest >= nextBefore);
}

/** The range when this page has come behind an island that begins at `from`. */
function grown(
  { island: _island, ...range }: LoadedRange,
  { from, page, to }: { from: Island['from']; page: EntryPage; to: number },
): LoadedRange {
  if (meets(page, range)) return { ...range, nextBefore: from };
  return { ...range, island: { from, to: page.entries.at(-1)?.seq ?? to, newer: 'idle' } };
}

/** Entries that an event brought while a page was read are newer than the page. */
function withEntries(entries: ChatState['entries'], pages: readonly EntryPage[]): Record<string, Entry> {
  return { ...Object.fromEntries(pages.flatMap((page) => page.entries).map((entry) => [entry.id, entry])), ...entries };
}

/** Without what was loaded around another message before. */
function leave(state: ChatState, conversationId: string): ChatState {
  const known: LoadedRange = state.ranges[conversationId] ?? { nextBefore: null, older: 'idle' };
  const { island, ...range } = known;
  if (island === undefined) return state;
  const isLeft = ({ conversationId: of, seq }: Entry) => of === conversationId && range.nextBefore !== null && seq < range.nextBefore;
  const kept = Object.entries(state.entries).filter(([, entry]) => !isLeft(entry));
  return withRange({ ...state, entries: Object.fromEntries(kept) }, conversationId, { ...range, older: 'idle' });
}

export function applyIslandLeft(state: ChatState, { conversationId }: Of<'island-left'>): ChatState {
  return leave(state, conversationId);
}

export function applyAround(state: ChatState, { conversationId, generation, older, newer }: Of<'around-read'>): ChatState {
  const range = state.ranges[conversationId];
  // A snapshot in between reads every loaded page again; and what has no newest page has no place for an island.
  if (generation !== state.generation || range === undefined || range.opening !== undefined) return state;
  const to = older.entries.at(-1)?.seq;
  if (to === undefined) return state;
  const left = leave(state, conversationId);
  const bare: LoadedRange = { nextBefore: left.ranges[conversationId]?.nextBefore ?? null, older: 'idle' };
  const placed = withRange(left, conversationId, grown(bare, { from: older.nextBefore, page: newer, to }));
  const read = { ...placed, entries: withEntries(placed.entries, [older, newer]) };
  return applyPageTurns(applyPageTurns(read, older), newer);
}

export function applyNewerAsked(state: ChatState, { conversationId }: Of<'newer-asked'>): ChatState {
  return setNewer(state, conversationId, 'loading');
}

/** The page behind the island; null: it cannot be read now. */
export function applyNewerRead(state: ChatState, { conversationId, generation, page }: Of<'newer-read'>): ChatState {
  const range = state.ranges[conversationId];
  const island = range?.island;
  if (generation !== state.generation || range === undefined || island?.newer !== 'loading') return state;
  if (page === null) return setNewer(state, conversationId, 'failed');
  const placed = withRange(state, conversationId, grown(range, { from: island.from, page, to: island.to }));
  return applyPageTurns({ ...placed, entries: withEntries(placed.entries, [page]) }, page);
}

function setNewer(state: ChatState, conversationId: string, newer: Island['newer']): ChatState {
  const range = state.ranges[conversationId];
  if (range?.island === undefined) return state;
  return withRange(state, conversationId, { ...range, island: { ...range.island, newer } });
}

/** The message above which messages are missing; null: none are. */
export function gapBefore(state: ChatState, conversationId: string | null): string | null {
  const range = conversationId === null ? undefined : state.ranges[conversationId];
  if (range?.island === undefined || range.nextBefore === null) return null;
  let first: Entry | null = null;
  for (const entry of Object.values(state.entries)) {
    if (entry.conversationId !== conversationId || entry.seq < range.nextBefore) continue;
    if (first === null || entry.seq < first.seq) first = entry;
  }
  return first?.id ?? null;
}
