/**
 * Owns: what a snapshot does (seed "Live updates"). After each one every loaded page is read again; events and the answers to own
 * writes wait until that is done, so that an older response never replaces them; then everything changes at once.
 * Does not own: the reading itself (chat/sync.ts).
 */
import type { Partial, Snapshot } from '../../contract/events.ts';
import type { Entry, Turn } from '../../contract/web.ts';
import { applyPageTurns } from './pages.ts';
import { foldPartial, type LiveText } from './partials.ts';
import {
  type ChatAction,
  type ChatState,
  type ConversationInfo,
  HELD_TYPES,
  type HeldAction,
  type LoadedRange,
  OWN_ANSWERS,
  type RereadPage,
} from './state.ts';
import { isOver } from './turns.ts';

/** Actions that wait for the pages. One more and the snapshot is given up for a newer one. */
const heldMax = 2_000;

export function isHeldWhileSyncing(action: ChatAction): action is HeldAction {
  return HELD_TYPES.some((type) => type === action.type);
}

export function applySnapshot(state: ChatState, snapshot: Snapshot): ChatState {
  // Events from before this snapshot are in it. The answers to own writes may not be: they wait on.
  const held = (state.sync?.held ?? []).filter((action) => OWN_ANSWERS.some((type) => type === action.type));
  return { ...state, generation: state.generation + 1, sync: { snapshot, held, overflow: false } };
}

export function hold(state: ChatState, action: HeldAction): ChatState {
  if (state.sync === null) return state;
  if (state.sync.held.length >= heldMax) return state.sync.overflow ? state : { ...state, sync: { ...state.sync, overflow: true } };
  return { ...state, sync: { ...state.sync, held: [...state.sync.held, action] } };
}

/** A snapshot does not tell how the attempt began, nor whether words came after its stage; what was known of that is still true. */
function liveOf(state: ChatState, partials: readonly Partial[]): Record<string, LiveText> {
  const live: Record<string, LiveText> = {};
  for (const partial of partials) {
    const folded = foldPartial(undefined, partial, state.epochFloors[partial.turnId] ?? null);
    const before = state.live[partial.turnId];
    const known = before?.epoch === partial.epoch ? before : undefined;
    const writing = known?.writing === true && known.stage === partial.stage;
    if (folded !== undefined) live[partial.turnId] = { ...folded, writing, idleStage: known?.idleStage ?? null };
  }
  return live;
}

/** Ended turns stay known: an end is final. A waiting or running one that the snapshot does not have ended out of sight. */
function turnsOf(state: ChatState, snapshot: Snapshot): { turns: Record<string, Turn>; lost: string[] } {
  const turns: Record<string, Turn> = {};
  const lost: string[] = [];
  for (const conversation of snapshot.conversations) for (const turn of conversation.turns) turns[turn.id] = turn;
  for (const turn of Object.values(state.turns)) {
    if (isOver(turn)) turns[turn.id] = turn;
    else if (!(turn.id in turns)) lost.push(turn.id);
  }
  return { turns, lost };
}

function rowsOf(pages: Readonly<Record<string, RereadPage>>): Pick<ChatState, 'entries' | 'ranges'> {
  const entries: Record<string, Entry> = {};
  const ranges: Record<string, LoadedRange> = {};
  for (const [conversationId, page] of Object.entries(pages)) {
    const { nextBefore, island } = page;
    ranges[conversationId] = { nextBefore, older: 'idle', ...(island === undefined ? {} : { island: { ...island, newer: 'idle' } }) };
    for (const entry of page.entries) entries[entry.id] = entry;
  }
  return { entries, ranges };
}

/** A snapshot carries the newest threads. Older ones, and one that was begun meanwhile, are still there. */
function conversationsOf(state: ChatState, snapshot: Snapshot, mainId: string | null): Record<string, ConversationInfo> {
  const conversations: Record<string, ConversationInfo> = {};
  for (const info of Object.values(state.conversations)) {
    if (info.parentConversationId !== null && info.parentConversationId === mainId) conversations[info.id] = info;
  }
  for (const { turns: _turns, ...info } of snapshot.conversations) conversations[info.id] = info;
  return conversations;
}

/**
 * The state as the ledger had it, before the held actions are applied on top.
 * @param pages every loaded page of each loaded conversation, read after the snapshot
 */
export function commitSnapshot(state: ChatState, pages: Readonly<Record<string, RereadPage>>): ChatState {
  if (state.sync === null) return state;
  const { snapshot } = state.sync;
  const mainId = snapshot.conversations.find((conversation) => conversation.parentConversationId === null)?.id ?? null;
  const { turns, lost } = turnsOf(state, snapshot);
  let next: ChatState = {
    ...state,
    ...rowsOf(pages),
    ready: true,
    sync: null,
    mainId,
    conversations: conversationsOf(state, snapshot, mainId),
    turns,
    live: liveOf(state, snapshot.partials),
    doubts: [],
    quotes: {},
    strangers: [],
  };
  for (const page of Object.values(pages)) next = applyPageTurns(next, page);
  const stopping = next.stopping.filter((id) => id in next.turns && !isOver(next.turns[id] as Turn));
  return { ...next, doubts: lost.filter((id) => !(id in next.turns)), stopping };
}
