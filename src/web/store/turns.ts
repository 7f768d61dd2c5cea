/**
 * Owns: which of two accounts of the same turn is believed, and what a change of a turn does to its live text.
 * Does not own: entries (pages.ts), or the fold of the live text (partials.ts).
 * A turn's DTO carries no version, so order is judged by what cannot happen backwards:
 * - an ended turn stays ended, whatever arrives later;
 * - attempts rise (queued, first attempt, queued again, second attempt). Only a run handed on gives its attempt back, so an account
 *   from further back is either late or a hand-over, and a start after it is either new or late: the ledger is asked (`doubts`)
 *   instead of guessing.
 */
import type { Turn } from '../../contract/web.ts';
import { hasGap } from './partials.ts';
import { type ChatState, excluding, including, without } from './state.ts';

export function isOver(turn: Turn): boolean {
  return turn.status === 'DONE' || turn.status === 'STOPPED' || turn.status === 'FAILED';
}

/** Where a waiting or running turn is in its life: queued 0, first attempt 1, queued again 2, second attempt 3. */
function progress(turn: Turn): number {
  return turn.status === 'RUNNING' ? turn.attempt * 2 - 1 : turn.attempt * 2;
}

/** Each claim raises the epoch and at most one attempt: words of an epoch below the attempt are of an attempt that is over. */
export function isStale(words: { epoch: number } | undefined, turn: Turn): boolean {
  return words !== undefined && words.epoch < turn.attempt;
}

export function hasAnswer(state: ChatState, turnId: string): boolean {
  return Object.values(state.entries).some((entry) => entry.turnId === turnId && entry.kind === 'answer');
}

/** Forget the words of an attempt that is over, and refuse its late deltas. */
function dropLive(state: ChatState, turnId: string): ChatState {
  const live = state.live[turnId];
  if (live === undefined) return state;
  const floor = Math.max(state.epochFloors[turnId] ?? live.epoch, live.epoch);
  return { ...state, live: without(state.live, turnId), epochFloors: { ...state.epochFloors, [turnId]: floor } };
}

/**
 * The words of a finished turn stay on the page until its answer arrives, so that they do not blink; those of a failed attempt go,
 * because the ledger does not keep them.
 */
function closeLive(state: ChatState, turn: Turn): ChatState {
  const live = state.live[turn.id];
  if (live === undefined) return state;
  const kept = turn.status !== 'FAILED' && !hasGap(live) && live.text !== '' && !hasAnswer(state, turn.id);
  if (!kept) return dropLive(state, turn.id);
  return { ...state, live: { ...state.live, [turn.id]: { ...live, closed: true, stage: null } } };
}

/** A conversation runs one turn at a time (rule R1): once the next one runs, a stopped one will get no more words. */
function dropStoppedLive(state: ChatState, running: Turn): ChatState {
  let next = state;
  for (const [turnId, live] of Object.entries(state.live)) {
    const turn = state.turns[turnId];
    if (live.closed && turn?.status === 'STOPPED' && turn.conversationId === running.conversationId) next = dropLive(next, turnId);
  }
  return next;
}

function moveLive(state: ChatState, known: Turn | undefined, turn: Turn): ChatState {
  if (isOver(turn)) return closeLive(state, turn);
  if (turn.status === 'RUNNING') {
    const fresh = isStale(state.live[turn.id], turn) ? dropLive(state, turn.id) : state;
    return known?.status === 'RUNNING' ? fresh : dropStoppedLive(fresh, turn);
  }
  const attemptEnded = known !== undefined && (known.status === 'RUNNING' || turn.attempt > known.attempt);
  return attemptEnded ? dropLive(state, turn.id) : state;
}

/** Only an end or a clear step forward settles a doubt by itself. */
function doubtsAfter(state: ChatState, known: Turn, turn: Turn): readonly string[] {
  // A second start looks like a late word of the first one when the run was handed on in between.
  const startsAgain = known.status === 'QUEUED' && known.startedAt !== null && turn.status === 'RUNNING';
  if (startsAgain) return including(state.doubts, turn.id);
  return isOver(turn) || progress(turn) > progress(known) ? excluding(state.doubts, turn.id) : state.doubts;
}

/**
 * The state with one more account of a turn.
 * @param source `stream`: ordered as a rule, but perhaps read before what is known. `ledger`: read after everything known.
 */
export function applyTurn(state: ChatState, turn: Turn, source: 'stream' | 'ledger'): ChatState {
  const known = state.turns[turn.id];
  if (known !== undefined && isOver(known)) return state;
  // A turn that was started once keeps its start time: an account from before the start can only be late.
  if (known !== undefined && known.startedAt !== null && turn.startedAt === null) return state;
  const backwards = known !== undefined && !isOver(turn) && progress(turn) < progress(known);
  if (backwards && source === 'stream') return { ...state, doubts: including(state.doubts, turn.id) };
  const moved = moveLive(state, known, turn);
  return {
    ...moved,
    turns: { ...moved.turns, [turn.id]: turn },
    doubts: source === 'ledger' || known === undefined ? excluding(moved.doubts, turn.id) : doubtsAfter(moved, known, turn),
    stopping: isOver(turn) ? excluding(moved.stopping, turn.id) : moved.stopping,
  };
}
