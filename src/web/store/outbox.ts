/**
 * Owns: the person's own questions until the ledger has them. A question shows once: as sending, or as its entry, never as both.
 * Does not own: the requests (chat/controller.ts).
 */
import { applyEntry } from './pages.ts';
import type { ChatAction, ChatState, OutgoingQuestion } from './state.ts';
import { applyTurn, isOver } from './turns.ts';

function change(state: ChatState, requestId: string, change: Partial<OutgoingQuestion>): ChatState {
  return { ...state, outbox: state.outbox.map((item) => (item.requestId === requestId ? { ...item, ...change } : item)) };
}

export function applyAsk(state: ChatState, question: OutgoingQuestion): ChatState {
  if (state.outbox.some((item) => item.requestId === question.requestId)) return state;
  return { ...state, outbox: [...state.outbox, question] };
}

export function applyResend(state: ChatState, requestId: string): ChatState {
  return change(state, requestId, { phase: 'sending', reason: null });
}

export function applyUnsent(state: ChatState, action: Extract<ChatAction, { type: 'unsent' }>): ChatState {
  return change(state, action.requestId, { phase: action.phase, reason: action.reason });
}

export function applyDiscard(state: ChatState, requestId: string): ChatState {
  return { ...state, outbox: state.outbox.filter((item) => item.requestId !== requestId) };
}

/** The 202 to an own question. What the stream or a page said about the same rows is newer, except that an end is final. */
export function applyAnswered(state: ChatState, action: Extract<ChatAction, { type: 'answered' }>): ChatState {
  const placed = applyDiscard(applyEntry(state, action.entry, 'new'), action.requestId);
  return action.turn.id in placed.turns && !isOver(action.turn) ? placed : applyTurn(placed, action.turn, 'ledger');
}

/** Drops each own question whose entry is here, however it came: a lost answer to a request must not show the question twice. */
export function settleOutbox(state: ChatState): ChatState {
  if (state.outbox.length === 0) return state;
  const arrived = new Set<string>();
  for (const turn of Object.values(state.turns)) if (turn.questionEntryId in state.entries) arrived.add(turn.requestId);
  const outbox = state.outbox.filter((item) => !arrived.has(item.requestId));
  return outbox.length === state.outbox.length ? state : { ...state, outbox };
}
