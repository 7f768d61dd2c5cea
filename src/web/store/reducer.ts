/**
 * Owns: state x action -> state, the only way in which the chat's state changes.
 * Does not own: I/O and time (chat/), drawing (ui/). The rules sit in the neighbouring files; this one is the table of contents.
 */
import { applyAround, applyAroundAsked, applyIslandLeft, applyNewerAsked, applyNewerRead } from './islands.ts';
import { applyAnswered, applyAsk, applyDiscard, applyResend, applyUnsent, settleOutbox } from './outbox.ts';
import { applyClosed, applyEntry, applyOpened, applyOpening, applyQuote, applyQuoteAsked, mergeOlder } from './pages.ts';
import { foldPartial } from './partials.ts';
import { applySnapshot, commitSnapshot, hold, isHeldWhileSyncing } from './snapshot.ts';
import { type ChatAction, type ChatState, excluding, including, type LoadedRange, without } from './state.ts';
import { applyThread, applyThreads } from './threads.ts';
import { applyTurn, isOver, isStale } from './turns.ts';
import { isAfter } from './unread.ts';
import { applyEraseAnswered, applyVoteAnswered } from './wishes.ts';

type Of<T extends ChatAction['type']> = Extract<ChatAction, { type: T }>;
type Around = Of<'around-asked' | 'around-read' | 'newer-asked' | 'newer-read'>;
type View = Of<'opening' | 'opened' | 'closed' | 'island-left' | 'quote-asked' | 'quote-read'> | Around;
type More = View | Of<'threads-read' | 'thread-begun' | 'vote-asked' | 'vote-answered' | 'erase-asked' | 'erase-answered'>;

function applyPartial(state: ChatState, { partial }: Of<'partial'>): ChatState {
  const turn = state.turns[partial.turnId];
  if (turn !== undefined && (isOver(turn) || isStale(partial, turn))) return state;
  const known = state.live[partial.turnId];
  const folded = foldPartial(known, partial, state.epochFloors[partial.turnId] ?? null);
  if (folded === known || folded === undefined) return state;
  return { ...state, live: { ...state.live, [partial.turnId]: folded } };
}

function applyRead(state: ChatState, { conversationId, lastReadAt }: Of<'read'>): ChatState {
  const info = state.conversations[conversationId];
  // It moves forward only; an event that comes late must not make read answers new again.
  if (info === undefined || lastReadAt === null || !isAfter(lastReadAt, info.lastReadAt)) return state;
  return { ...state, conversations: { ...state.conversations, [conversationId]: { ...info, lastReadAt } } };
}

/** A read of one turn in doubt. An end is believed always; anything else only when no snapshot came in between. */
function applyTurnRead(state: ChatState, { turnId, turn, generation }: Of<'turn-read'>): ChatState {
  if (turn === null) return { ...state, doubts: excluding(state.doubts, turnId), turns: without(state.turns, turnId) };
  if (isOver(turn)) return applyTurn(state, turn, 'ledger');
  const fresh = generation === state.generation && state.sync === null && state.doubts.includes(turnId);
  return fresh ? applyTurn(state, turn, 'ledger') : state;
}

function applyStopAnswered(state: ChatState, { turnId, turn }: Of<'stop-answered'>): ChatState {
  const next = { ...state, stopping: excluding(state.stopping, turnId) };
  return turn !== null && isOver(turn) ? applyTurn(next, turn, 'ledger') : next;
}

function setOlder(state: ChatState, conversationId: string, older: LoadedRange['older']): ChatState {
  const range = state.ranges[conversationId];
  if (range === undefined || range.older === older) return state;
  return { ...state, ranges: { ...state.ranges, [conversationId]: { ...range, older } } };
}

function applyOlder(state: ChatState, action: Of<'older-read'> | Of<'older-failed'>): ChatState {
  // A snapshot in between reads every loaded page again and resets `older`; this answer belongs to what was.
  if (action.generation !== state.generation || state.ranges[action.conversationId]?.older !== 'loading') return state;
  if (action.type === 'older-failed') return setOlder(state, action.conversationId, 'failed');
  return mergeOlder(state, action.conversationId, action.page);
}

function applySynced(state: ChatState, action: Of<'synced'>): ChatState {
  if (state.sync === null || action.generation !== state.generation) return state;
  const { held } = state.sync;
  return held.reduce(apply, commitSnapshot(state, action.pages));
}

function apply(state: ChatState, action: ChatAction): ChatState {
  switch (action.type) {
    case 'snapshot':
      return applySnapshot(state, action.snapshot);
    case 'synced':
      return applySynced(state, action);
    case 'turn':
      return applyTurn(state, action.turn, 'stream');
    case 'entry':
      return applyEntry(state, action.entry);
    case 'partial':
      return applyPartial(state, action);
    case 'read':
      return applyRead(state, action);
    case 'ask':
      return applyAsk(state, action.question);
    case 'resend':
      return applyResend(state, action.requestId);
    case 'discard':
      return applyDiscard(state, action.requestId);
    case 'unsent':
      return applyUnsent(state, action);
    case 'answered':
      return applyAnswered(state, action);
    case 'stop-asked':
      return { ...state, stopping: including(state.stopping, action.turnId) };
    case 'stop-answered':
      return applyStopAnswered(state, action);
    case 'turn-read':
      return applyTurnRead(state, action);
    case 'older-asked':
      return setOlder(state, action.conversationId, 'loading');
    case 'older-read':
    case 'older-failed':
      return applyOlder(state, action);
    default:
      return applyMore(state, action);
  }
}

/** Threads, and wishes about one message. */
function applyMore(state: ChatState, action: More): ChatState {
  switch (action.type) {
    case 'threads-read':
      return applyThreads(state, action.threads, action.generation);
    case 'thread-begun':
      return applyThread(state, action.thread);
    case 'vote-asked':
      return { ...state, votes: { ...state.votes, [action.entryId]: action.vote } };
    case 'vote-answered':
      return applyVoteAnswered(state, action);
    case 'erase-asked':
      return { ...state, erasing: including(state.erasing, action.entryId) };
    case 'erase-answered':
      return applyEraseAnswered(state, action);
    default:
      return applyView(state, action);
  }
}

/** What comes into view and leaves it. */
function applyView(state: ChatState, action: View): ChatState {
  switch (action.type) {
    case 'opening':
      return applyOpening(state, action.conversationId);
    case 'opened':
      return applyOpened(state, action);
    case 'closed':
      return applyClosed(state, action.conversationId);
    case 'around-asked':
      return applyAroundAsked(state, action);
    case 'around-read':
      return applyAround(state, action);
    case 'newer-asked':
      return applyNewerAsked(state, action);
    case 'newer-read':
      return applyNewerRead(state, action);
    case 'island-left':
      return applyIslandLeft(state, action);
    case 'quote-asked':
      return applyQuoteAsked(state, action);
    case 'quote-read':
      return applyQuote(state, action);
  }
}

/** The next state. Returns the same object when nothing changed. */
export function reduce(state: ChatState, action: ChatAction): ChatState {
  if (state.sync !== null && isHeldWhileSyncing(action)) return hold(state, action);
  return settleOutbox(apply(state, action));
}
