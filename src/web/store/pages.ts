/**
 * Owns: the entries of the loaded part of a conversation: each message once, by id.
 * Does not own: reading pages (chat/sync.ts), or their order on the page (timeline.ts).
 * - What lies before the loaded part is left alone until it is loaded.
 * - A thread is loaded while somebody looks at it; the main conversation always.
 * - An erased entry never comes back. An erased question takes what is being written about it along.
 */
import type { Entry, EntryPage } from '../../contract/web.ts';
import { type ChatAction, type ChatState, type LoadedRange, without, withRange } from './state.ts';
import { noteInThreads } from './threads.ts';
import { applyTurn, isOver } from './turns.ts';

/** Whether the entry belongs to what is loaded, or may come to it with the page that is being read. */
function inRange(state: ChatState, entry: Entry): boolean {
  const range = state.ranges[entry.conversationId];
  if (range === undefined) return false;
  const loading = range.older === 'loading' || range.island?.newer === 'loading' || range.around === 'asked';
  if (range.nextBefore === null || loading || entry.seq >= range.nextBefore) return true;
  if (entry.id in state.entries) return true;
  return entry.turnId !== null && Object.values(state.entries).some((known) => known.turnId === entry.turnId);
}

/** The first words of a person's first conversation: there is nothing before them, so nothing has to be read. */
function openFirstConversation(state: ChatState, entry: Entry): ChatState {
  const info = {
    id: entry.conversationId,
    parentConversationId: null,
    parentEntryId: null,
    latestSeq: entry.seq,
    lastAnswerAt: null,
    lastReadAt: null,
    createdAt: entry.createdAt,
  };
  const range: LoadedRange = { nextBefore: null, older: 'idle' };
  return {
    ...state,
    mainId: entry.conversationId,
    conversations: { ...state.conversations, [entry.conversationId]: info },
    ranges: { ...state.ranges, [entry.conversationId]: range },
  };
}

/** What a thread quotes follows its message, also where that is not loaded. */
function requote(state: ChatState, entry: Entry): ChatState {
  const known = state.quotes[entry.id];
  const stale = known === undefined || (known !== null && known.erasedAt !== null);
  return stale ? state : { ...state, quotes: { ...state.quotes, [entry.id]: entry } };
}

/** From now on an event about it is newer than what is being read. */
export function applyQuoteAsked(state: ChatState, { entryId }: Extract<ChatAction, { type: 'quote-asked' }>): ChatState {
  return entryId in state.quotes ? state : { ...state, quotes: { ...state.quotes, [entryId]: null } };
}

export function applyQuote(state: ChatState, { entryId, generation, entry }: Extract<ChatAction, { type: 'quote-read' }>): ChatState {
  // What an event said since is newer.
  if (generation !== state.generation || (state.quotes[entryId] ?? null) !== null) return state;
  return { ...state, quotes: { ...state.quotes, [entryId]: entry } };
}

/**
 * The state with an entry as the ledger has it now.
 * @param only `new`: an entry that is known already is newer than this account of it (the answer to an own write).
 */
export function applyEntry(state: ChatState, entry: Entry, only: 'new' | 'any' = 'any'): ChatState {
  const opened = requote(noteInThreads(state.ready && state.mainId === null ? openFirstConversation(state, entry) : state, entry), entry);
  const known = opened.entries[entry.id];
  const stale = known !== undefined && (only === 'new' || (known.erasedAt !== null && entry.erasedAt === null));
  if (stale || !inRange(opened, entry)) return opened;
  const answered = entry.kind === 'answer' && entry.turnId !== null && opened.live[entry.turnId]?.closed === true;
  const erased = entry.kind === 'question' && entry.turnId !== null && entry.erasedAt !== null;
  return {
    ...opened,
    entries: { ...opened.entries, [entry.id]: entry },
    live: answered || erased ? without(opened.live, entry.turnId ?? '') : opened.live,
  };
}

/** The turns of a page's entries. Of one that is known already only an end is news: what comes before it is the stream's to tell. */
export function applyPageTurns(state: ChatState, page: EntryPage): ChatState {
  let next = state;
  for (const turn of page.turns) if (!(turn.id in next.turns) || isOver(turn)) next = applyTurn(next, turn, 'ledger');
  return next;
}

/** One older page, below what is loaded. An entry that an event brought while the page was read is newer than the page. */
export function mergeOlder(state: ChatState, conversationId: string, page: EntryPage): ChatState {
  const entries: Record<string, Entry> = {};
  for (const entry of page.entries) entries[entry.id] = entry;
  const island = state.ranges[conversationId]?.island;
  const range: LoadedRange = { nextBefore: page.nextBefore, older: 'idle' };
  const above = { nextBefore: state.ranges[conversationId]?.nextBefore ?? null, older: 'idle' as const };
  const grown = island === undefined ? range : { ...above, island: { ...island, from: page.nextBefore } };
  return applyPageTurns(withRange({ ...state, entries: { ...entries, ...state.entries } }, conversationId, grown), page);
}

export function applyOpening(state: ChatState, conversationId: string): ChatState {
  const range = state.ranges[conversationId];
  if (range !== undefined && (range.opening === undefined || range.opening === 'asked')) return state;
  return { ...state, ranges: { ...state.ranges, [conversationId]: { nextBefore: null, older: 'idle', opening: 'asked' } } };
}

/** The newest page of a conversation that came into view. A snapshot in between reads it by itself. */
export function applyOpened(state: ChatState, { conversationId, generation, page }: Extract<ChatAction, { type: 'opened' }>): ChatState {
  const range = state.ranges[conversationId];
  if (generation !== state.generation || range?.opening !== 'asked') return state;
  if (typeof page === 'object') return mergeOlder(state, conversationId, page);
  return { ...state, ranges: { ...state.ranges, [conversationId]: { ...range, opening: page } } };
}

export function applyClosed(state: ChatState, conversationId: string): ChatState {
  if (conversationId === state.mainId || !(conversationId in state.ranges)) return state;
  const kept = Object.entries(state.entries).filter(([, entry]) => entry.conversationId !== conversationId);
  return { ...state, ranges: without(state.ranges, conversationId), entries: Object.fromEntries(kept) };
}
