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
function meets(page: EntryPage, nextBefore: number | null): boolean {
  const newest = page.entries.at(-1)?.seq;
  return page.nextAfter === null || nextBefore === null || (newest !== undefined && newest >= nextBefore);
}

/** The range when this page has come behind an island that begins at `from`. */
function grown({ nextBefore, older }: LoadedRange, { from, page, to }: { from: Island['from']; page: EntryPage; to: number }): LoadedRange {
  if (meets(page, nextBefore)) return { nextBefore: from, older };
  return { nextBefore, older, island: { from, to: page.entries.at(-1)?.seq ?? to, newer: 'idle' } };
}

/** Without the entries that belong to no piece: those of an island that was left, and what events brought while a page was read. */
function tidied(state: ChatState, conversationId: string): ChatState {
  const range = state.ranges[conversationId];
  if (range === undefined || range.nextBefore === null) return state;
  const { nextBefore, island } = range;
  const isOnIsland = (seq: number) => island !== undefined && seq <= island.to && (island.from === null || seq >= island.from);
  const isKept = ({ conversationId: of, seq }: Entry) => of !== conversationId || seq >= nextBefore || isOnIsland(seq);
  return { ...state, entries: Object.fromEntries(Object.entries(state.entries).filter(([, entry]) => isKept(entry))) };
}

/** With these pages. Entries that an event brought while they were read are newer. */
function withPages(state: ChatState, pages: readonly EntryPage[]): ChatState {
  const read = Object.fromEntries(pages.flatMap((page) => page.entries).map((entry) => [entry.id, entry]));
  return pages.reduce(applyPageTurns, { ...state, entries: { ...read, ...state.entries } });
}

export function applyIslandLeft(state: ChatState, { conversationId }: Of<'island-left'>): ChatState {
  const range = state.ranges[conversationId];
  if (range?.island === undefined) return state;
  return tidied(withRange(state, conversationId, { nextBefore: range.nextBefore, older: 'idle' }), conversationId);
}

export function applyAroundAsked(state: ChatState, { conversationId }: Of<'around-asked'>): ChatState {
  const range = state.ranges[conversationId];
  return range === undefined ? state : withRange(state, conversationId, { ...range, around: 'asked' });
}

/** The pages around one message take the place of those around another. */
export function applyAround(state: ChatState, { conversationId, generation, pages }: Of<'around-read'>): ChatState {
  const range = state.ranges[conversationId];
  // A snapshot in between reads every loaded page again; and what has no newest page has no place for an island.
  if (generation !== state.generation || range === undefined || range.opening !== undefined) return state;
  const { around: _asked, ...known } = range;
  const to = pages?.older.entries.at(-1)?.seq;
  if (pages === null || to === undefined) return tidied(withRange(state, conversationId, known), conversationId);
  const { older, newer } = pages;
  const bare: LoadedRange = { nextBefore: range.nextBefore, older: 'idle' };
  const placed = withRange(state, conversationId, grown(bare, { from: older.nextBefore, page: newer, to }));
  return tidied(withPages(placed, [older, newer]), conversationId);
}

export function applyNewerAsked(state: ChatState, { conversationId }: Of<'newer-asked'>): ChatState {
  return setNewer(state, conversationId, 'loading');
}

/** The page behind the island; null: it cannot be read now. */
export function applyNewerRead(state: ChatState, { conversationId, generation, page }: Of<'newer-read'>): ChatState {
  const range = state.ranges[conversationId];
  const island = range?.island;
  if (generation !== state.generation || range === undefined || island?.newer !== 'loading') return state;
  if (page === null) return tidied(setNewer(state, conversationId, 'failed'), conversationId);
  const placed = withRange(state, conversationId, grown(range, { from: island.from, page, to: island.to }));
  return tidied(withPages(placed, [page]), conversationId);
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
