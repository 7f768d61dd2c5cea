/**
 * Owns: what is known of threads: which there are, what the stream says of those that nobody looks at, which have something new.
 * Does not own: the messages of a thread that is open (pages.ts).
 */
import type { Conversation, Entry } from '../../contract/web.ts';
import { type ChatState, type ConversationInfo, including } from './state.ts';
import { applyTurn, isOver } from './turns.ts';
import { isAfter } from './unread.ts';

export interface ThreadSummary {
  id: string;
  /** First words of its parent; empty when they were erased. */
  title: string;
  parentEntryId: string | null;
  /** When something was said last. */
  at: string;
  answering: boolean;
  /** Something that the person said there did not reach the server. */
  unsent: boolean;
  /** Its newest answer came after the person looked last, on any device. */
  unread: boolean;
}

function setInfo(state: ChatState, info: ConversationInfo): ChatState {
  return { ...state, conversations: { ...state.conversations, [info.id]: info } };
}

/** A message that was erased is quoted nowhere. */
function untitle(state: ChatState, entry: Entry): ChatState {
  const quoting = Object.values(state.conversations).filter((info) => info.parentEntryId === entry.id && info.title !== '');
  return quoting.reduce((next, info) => setInfo(next, { ...info, title: '' }), state);
}

/** What an entry says about conversations, whether or not somebody looks at it. */
export function noteInThreads(state: ChatState, entry: Entry): ChatState {
  const info = state.conversations[entry.conversationId];
  if (info === undefined) {
    const known = !state.ready || state.mainId === null;
    return known ? state : { ...state, strangers: including(state.strangers, entry.conversationId) };
  }
  if (entry.erasedAt !== null) return untitle(state, entry);
  const news = entry.kind === 'answer' && isAfter(entry.createdAt, info.lastAnswerAt);
  return news ? setInfo(state, { ...info, lastAnswerAt: entry.createdAt }) : state;
}

/** One account of a thread. Of a turn that is known already only an end is news. */
export function applyThread(state: ChatState, { turns, ...info }: Conversation): ChatState {
  let next = setInfo(state, info);
  for (const turn of turns) if (!(turn.id in next.turns) || isOver(turn)) next = applyTurn(next, turn, 'ledger');
  return next;
}

/** The list of threads. One under which a snapshot came in between may be too old to believe. */
export function applyThreads(state: ChatState, threads: readonly Conversation[], generation: number): ChatState {
  if (generation !== state.generation) return state;
  return { ...threads.reduce(applyThread, state), strangers: [] };
}

export function threadReadAt(state: ChatState, threadId: string): string | null {
  const main = state.mainId === null ? undefined : state.conversations[state.mainId];
  // Who never opened it has read what there was when they looked at the main conversation last.
  return state.conversations[threadId]?.lastReadAt ?? main?.lastReadAt ?? null;
}

/** All threads that are known, the newest first. */
export function threadsOf(state: ChatState): readonly ThreadSummary[] {
  const running = new Set(Object.values(state.turns).flatMap((turn) => (turn.status === 'RUNNING' ? [turn.conversationId] : [])));
  const threads = Object.values(state.conversations).filter((info) => info.parentConversationId !== null);
  threads.sort((a, b) => (a.createdAt === b.createdAt ? (a.id < b.id ? 1 : -1) : isAfter(a.createdAt, b.createdAt) ? -1 : 1));
  return threads.map(({ id, title = '', parentEntryId, lastAnswerAt, createdAt }) => ({
    id,
    title,
    parentEntryId,
    at: lastAnswerAt ?? createdAt,
    answering: running.has(id),
    unsent: state.outbox.some((question) => question.threadId === id && question.phase !== 'sending'),
    unread: lastAnswerAt !== null && isAfter(lastAnswerAt, threadReadAt(state, id)),
  }));
}
