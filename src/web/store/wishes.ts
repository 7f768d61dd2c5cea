/**
 * Owns: what a person wants done to a message: a vote shows at once and falls back when it is refused; a deletion shows when it happened.
 * Does not own: the requests (chat/wishes.ts).
 */
import { applyEntry } from './pages.ts';
import { type ChatAction, type ChatState, excluding, without } from './state.ts';

type Of<T extends ChatAction['type']> = Extract<ChatAction, { type: T }>;

/** Of several votes that are under way the last one is shown, and only its own answer ends that. */
export function applyVoteAnswered(state: ChatState, { entryId, vote, entry }: Of<'vote-answered'>): ChatState {
  const isLast = entryId in state.votes && state.votes[entryId] === vote;
  const settled = isLast ? { ...state, votes: without(state.votes, entryId) } : state;
  return entry === null ? settled : applyEntry(settled, entry);
}

export function applyEraseAnswered(state: ChatState, { entryId, entry }: Of<'erase-answered'>): ChatState {
  const settled = { ...state, erasing: excluding(state.erasing, entryId) };
  return entry === null ? settled : applyEntry(settled, entry);
}
