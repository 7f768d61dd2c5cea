/**
 * Owns: the shape of everything that the chat knows, and the actions that may change it.
 * Does not own: the rules (reducer.ts and its neighbours), or what is drawn (timeline.ts).
 * The state is plain data: no DOM, no time, no I/O, so that Node specs can run every interleaving.
 */
import type { Partial, Snapshot } from '../../contract/events.ts';
import type { Conversation, Entry, EntryPage, PageContext, Turn } from '../../contract/web.ts';
import type { LiveText } from './partials.ts';

/** Own question that is not yet an entry. `requestId` never changes, so that a resend cannot ask twice (rule R2). */
export interface OutgoingQuestion {
  requestId: string;
  /** The thread in which it is asked; null: the main conversation. */
  threadId: string | null;
  text: string;
  /** ISO time at which the person pressed Send, for display. */
  askedAt: string;
  /**
   * `sending`: a request is under way. `unsent`: no answer came, so the server may or may not have it; sending again is safe.
   * `refused`: the server said no and why; the words go back to the composer, or stay here when a newer draft is there.
   */
  phase: 'sending' | 'unsent' | 'refused';
  /** The page beside the panel; sent along. */
  page?: PageContext;
  /** For a person: why it was not sent. null while sending. */
  reason: string | null;
}

/** An older piece that is loaded around one message. Between it and the newest piece there are messages that are not. */
export interface Island {
  /** `before` of the next older page; null at the beginning of the conversation. */
  from: number | null;
  /** `after` of the next newer page. */
  to: number;
  newer: 'idle' | 'loading' | 'failed';
}

/** How much of a conversation is loaded: everything from `nextBefore` to its end, and an island. */
export interface LoadedRange {
  /** `before` of the page above the newest piece; null at the beginning of the conversation. */
  nextBefore: number | null;
  /** The page above all that is loaded. */
  older: 'idle' | 'loading' | 'failed';
  island?: Island;
  /** Only while what stands around a message is being read: an event about any of it is newer than what is read. */
  around?: 'asked';
  /** Only while the newest page is not here: it was asked for, could not be read, or there is no such conversation. */
  opening?: 'asked' | 'failed' | 'gone';
}

export type Vote = Entry['vote'];

export type ConversationInfo = Omit<Conversation, 'turns'>;

/** The answers to own writes. */
export const OWN_ANSWERS = ['answered', 'stop-answered', 'vote-answered', 'erase-answered'] as const;
export const HELD_TYPES = ['turn', 'entry', 'partial', 'read', ...OWN_ANSWERS] as const;
type HeldType = (typeof HELD_TYPES)[number];
/** Events and own answers that may not be applied before the pages have been read again. */
export type HeldAction = Extract<ChatAction, { type: HeldType }>;

/** A snapshot whose pages are being read. Nothing of it shows before they are there: the page changes once. */
export interface Sync {
  snapshot: Snapshot;
  held: readonly HeldAction[];
  /** More than `heldMax` actions waited. The rest was dropped, so another snapshot is needed. */
  overflow: boolean;
}

export interface ChatState {
  /** Snapshots received. A read that was asked for under another generation may be too old to believe. */
  generation: number;
  /** False until the first snapshot and its pages are applied. */
  ready: boolean;
  sync: Sync | null;
  mainId: string | null;
  conversations: Readonly<Record<string, ConversationInfo>>;
  ranges: Readonly<Record<string, LoadedRange>>;
  entries: Readonly<Record<string, Entry>>;
  turns: Readonly<Record<string, Turn>>;
  live: Readonly<Record<string, LiveText>>;
  /** Turn id -> newest epoch whose attempt is over. */
  epochFloors: Readonly<Record<string, number>>;
  /** Turns about which the stream leaves a doubt: the ledger is asked. */
  doubts: readonly string[];
  /** Turns that a stop was asked for and is not answered yet. */
  stopping: readonly string[];
  outbox: readonly OutgoingQuestion[];
  /** Entry id -> the vote that was given and is not answered yet. It is shown until then. */
  votes: Readonly<Record<string, Vote>>;
  /** Entries whose deletion is asked for and not answered yet. */
  erasing: readonly string[];
  /** Messages that threads are about and that are not loaded, as they were read last; null: none could be (yet). For as long as a snapshot lasts. */
  quotes: Readonly<Record<string, Entry | null>>;
  /** Conversations that the stream spoke of and nobody has described yet: the list of threads is asked. */
  strangers: readonly string[];
}

/** All that is loaded of a conversation, read again. */
export type RereadPage = EntryPage & { readonly island?: Pick<Island, 'from' | 'to'> };

export type ChatAction =
  | { type: 'snapshot'; snapshot: Snapshot }
  | { type: 'synced'; generation: number; pages: Readonly<Record<string, RereadPage>> }
  | { type: 'turn'; turn: Turn }
  | { type: 'entry'; entry: Entry }
  | { type: 'partial'; partial: Partial }
  | { type: 'read'; conversationId: string; lastReadAt: string | null }
  | { type: 'ask'; question: OutgoingQuestion }
  | { type: 'resend'; requestId: string }
  | { type: 'discard'; requestId: string }
  | { type: 'unsent'; requestId: string; phase: 'unsent' | 'refused'; reason: string }
  /** The 202 to an own question. */
  | { type: 'answered'; requestId: string; entry: Entry; turn: Turn }
  | { type: 'stop-asked'; turnId: string }
  | { type: 'stop-answered'; turnId: string; turn: Turn | null }
  | { type: 'turn-read'; turnId: string; turn: Turn | null; generation: number }
  | { type: 'older-asked'; conversationId: string }
  | { type: 'older-read'; conversationId: string; generation: number; page: EntryPage }
  | { type: 'older-failed'; conversationId: string; generation: number }
  /** What stands around one message that is not loaded; `pages` null: it cannot be read. */
  | { type: 'around-asked'; conversationId: string }
  | { type: 'around-read'; conversationId: string; generation: number; pages: { older: EntryPage; newer: EntryPage } | null }
  | { type: 'newer-asked'; conversationId: string }
  | { type: 'newer-read'; conversationId: string; generation: number; page: EntryPage | null }
  /** The person is back at the end: the island is let go of. */
  | { type: 'island-left'; conversationId: string }
  | { type: 'quote-asked'; entryId: string }
  | { type: 'quote-read'; entryId: string; generation: number; entry: Entry | null }
  /** A conversation comes into view: its newest page is asked for. */
  | { type: 'opening'; conversationId: string }
  | { type: 'opened'; conversationId: string; generation: number; page: EntryPage | 'failed' | 'gone' }
  /** A thread is left: it is read anew when somebody comes back. */
  | { type: 'closed'; conversationId: string }
  | { type: 'threads-read'; generation: number; threads: readonly Conversation[] }
  | { type: 'thread-begun'; thread: Conversation }
  | { type: 'vote-asked'; entryId: string; vote: Vote }
  /** `entry` is null when the vote was refused or lost. */
  | { type: 'vote-answered'; entryId: string; vote: Vote; entry: Entry | null }
  | { type: 'erase-asked'; entryId: string }
  | { type: 'erase-answered'; entryId: string; entry: Entry | null };

export const EMPTY_STATE: ChatState = {
  generation: 0,
  ready: false,
  sync: null,
  mainId: null,
  conversations: {},
  ranges: {},
  entries: {},
  turns: {},
  live: {},
  epochFloors: {},
  doubts: [],
  stopping: [],
  outbox: [],
  votes: {},
  erasing: [],
  quotes: {},
  strangers: [],
};

/** `record` without `key`; the same object when the key is not there. */
export function without<T>(record: Readonly<Record<string, T>>, key: string): Readonly<Record<string, T>> {
  if (!(key in record)) return record;
  const { [key]: _gone, ...rest } = record;
  return rest;
}

export function withRange(state: ChatState, conversationId: string, range: LoadedRange): ChatState {
  return { ...state, ranges: { ...state.ranges, [conversationId]: range } };
}

/** `list` with `value` once; the same list when it is there already. */
export function including(list: readonly string[], value: string): readonly string[] {
  return list.includes(value) ? list : [...list, value];
}

/** `list` without `value`; the same list when it is not there. */
export function excluding(list: readonly string[], value: string): readonly string[] {
  return list.includes(value) ? list.filter((item) => item !== value) : list;
}
