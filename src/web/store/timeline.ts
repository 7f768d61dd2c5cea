/**
 * Owns: what one conversation shows, in order: state -> items. Pure, so that a spec can compare it with the ledger.
 * Does not own: words and looks (ui/, strings.ts).
 * Order is the path order of the ledger: turns by the `seq` of their first entry, inside a turn by `seq`, own unsent questions last.
 */
import type { Entry, Part, Turn } from '../../contract/web.ts';
import { causeOf, type FailureCause } from './failures.ts';
import { hasGap, type LiveText } from './partials.ts';
import type { ChatState, OutgoingQuestion, Vote } from './state.ts';

export type QuestionStatus =
  | { kind: 'none' }
  | { kind: 'sending' }
  | { kind: 'unsent'; reason: string | null; requestId: string }
  /** Waits behind other questions of this conversation. `place` counts from 1. */
  | { kind: 'queued'; place: number }
  /** Waits for a free slot of the installation. */
  | { kind: 'waiting'; position: number | null }
  | { kind: 'starting'; again: boolean }
  | { kind: 'stopped'; started: boolean };

interface ItemBase {
  /** Stays the same from the first sign of a message to the end, so that the page does not jump. */
  id: string;
  at: string;
  turnId: string | null;
  /** The row in the ledger that it is; null while there is none. */
  entryId: string | null;
}
export interface QuestionItem extends ItemBase {
  kind: 'question';
  text: string;
  erased: boolean;
  fromSlack: boolean;
  status: QuestionStatus;
  stopping: boolean;
  /** Its deletion is under way. */
  deleting: boolean;
}
export interface AnswerItem extends ItemBase {
  kind: 'answer';
  text: string;
  parts: readonly Part[];
  erased: boolean;
  digest: boolean;
  phase: 'live' | 'done' | 'stopped';
  /** Only while live: what the assistant does; null while it writes, and for no particular thing. */
  stage: string | null;
  /** The person's, as they gave it last. */
  vote: Vote;
}
export interface FailureItem extends ItemBase {
  kind: 'failure';
  text: string;
  cause: FailureCause;
  /** The question's words, to ask again; null when they are not loaded or erased. */
  question: string | null;
}
export type TimelineItem = QuestionItem | AnswerItem | FailureItem;

interface Group {
  turn: Turn | undefined;
  entries: Entry[];
}

function groupsOf(state: ChatState, conversationId: string): Group[] {
  const groups = new Map<string, Group>();
  for (const entry of Object.values(state.entries)) {
    if (entry.conversationId !== conversationId) continue;
    const key = entry.turnId ?? entry.id;
    const group = groups.get(key);
    if (group !== undefined) group.entries.push(entry);
    else groups.set(key, { turn: entry.turnId === null ? undefined : state.turns[entry.turnId], entries: [entry] });
  }
  const list = [...groups.values()];
  for (const group of list) group.entries.sort((a, b) => a.seq - b.seq);
  return list.sort((a, b) => (a.entries[0]?.seq ?? 0) - (b.entries[0]?.seq ?? 0));
}

/** Turn id -> place among the waiting questions of the conversation, from 1. Waits are ordered as their questions are (rule R3). */
function queuePlaces(groups: readonly Group[]): Map<string, number> {
  const places = new Map<string, number>();
  for (const { turn } of groups) if (turn?.status === 'QUEUED') places.set(turn.id, places.size + 1);
  return places;
}

function queuedStatus(turn: Turn, place: number, busy: boolean): QuestionStatus {
  if (turn.waitingFor === 'FREE_HEPH') return { kind: 'waiting', position: turn.position };
  if (busy || place > 1) return { kind: 'queued', place };
  return { kind: 'starting', again: turn.attempt > 0 };
}

function answerItem(entry: Entry, { id, turn, state }: { id: string; turn: Turn | undefined; state: ChatState }): AnswerItem {
  const asked = state.votes[entry.id];
  return {
    kind: 'answer',
    id,
    at: entry.createdAt,
    turnId: entry.turnId,
    entryId: entry.id,
    text: entry.text,
    parts: entry.parts,
    erased: entry.erasedAt !== null,
    digest: entry.kind === 'digest',
    phase: turn?.status === 'STOPPED' ? 'stopped' : 'done',
    stage: null,
    vote: asked === undefined ? entry.vote : asked,
  };
}

function stageOf(turn: Turn, live: LiveText | undefined): string | null {
  if (live === undefined || hasGap(live)) return live?.stage ?? turn.stage;
  return live.writing ? null : (live.stage ?? turn.stage);
}

/** The answer that is being written, or the last words of one whose entry has not come yet. */
function liveItem(turn: Turn, live: LiveText | undefined): AnswerItem | null {
  if (turn.status !== 'RUNNING' && live?.closed !== true) return null;
  const text = live === undefined || hasGap(live) ? '' : live.text;
  return {
    kind: 'answer',
    id: `answer:${turn.id}`,
    at: turn.startedAt ?? turn.createdAt,
    turnId: turn.id,
    entryId: null,
    text,
    parts: [{ type: 'text', text }],
    erased: false,
    digest: false,
    phase: turn.status === 'RUNNING' ? 'live' : turn.status === 'STOPPED' ? 'stopped' : 'done',
    stage: turn.status === 'RUNNING' ? stageOf(turn, live) : null,
    vote: null,
  };
}

/** What was written so far. Words about a question that was erased are not shown: their answer will not come. */
function liveOf(state: ChatState, turn: Turn): LiveText | undefined {
  const erased = (state.entries[turn.questionEntryId]?.erasedAt ?? null) !== null;
  return erased ? undefined : state.live[turn.id];
}

interface Around {
  state: ChatState;
  places: Map<string, number>;
  busy: boolean;
}

/** What a question without an answer waits for, or why it got none. */
function questionStatus(turn: Turn | undefined, around: Around): QuestionStatus {
  if (turn?.status === 'QUEUED') return queuedStatus(turn, around.places.get(turn.id) ?? 1, around.busy);
  const cutOff = turn?.status === 'STOPPED' && liveItem(turn, liveOf(around.state, turn)) === null;
  return cutOff ? { kind: 'stopped', started: turn.startedAt !== null } : { kind: 'none' };
}

function questionItem(entry: Entry, turn: Turn | undefined, around: Around): QuestionItem {
  // The id of the sending bubble, so that it turns into the entry in place. Only the app's own request ids are unique on this page.
  const id = turn !== undefined && entry.surface === 'app' ? turn.requestId : entry.id;
  return {
    kind: 'question',
    id,
    at: entry.createdAt,
    turnId: entry.turnId,
    entryId: entry.id,
    text: entry.text,
    erased: entry.erasedAt !== null,
    fromSlack: entry.surface === 'slack',
    status: { kind: 'none' },
    stopping: turn !== undefined && around.state.stopping.includes(turn.id),
    deleting: around.state.erasing.includes(entry.id),
  };
}

function failureItem(turn: Turn, question: QuestionItem | undefined): FailureItem {
  const words = question === undefined || question.erased ? null : question.text;
  const at = turn.endedAt ?? turn.createdAt;
  const cause = causeOf(turn.error?.code);
  return {
    kind: 'failure',
    id: `failure:${turn.id}`,
    at,
    turnId: turn.id,
    entryId: null,
    text: turn.error?.text ?? '',
    cause,
    question: words,
  };
}

function groupItems({ turn, entries }: Group, around: Around): TimelineItem[] {
  const answers = entries.filter((entry) => entry.kind === 'answer');
  const items = entries.map((entry) => {
    if (entry.kind === 'question') return questionItem(entry, turn, around);
    const id = entry === answers[0] && entry.turnId !== null ? `answer:${entry.turnId}` : entry.id;
    return answerItem(entry, { id, turn, state: around.state });
  });
  if (turn === undefined || answers.length > 0) return items;
  const question = items.find((item) => item.kind === 'question');
  if (question !== undefined) question.status = questionStatus(turn, around);
  const live = liveItem(turn, liveOf(around.state, turn));
  if (live !== null) return [...items, live];
  return turn.status === 'FAILED' ? [...items, failureItem(turn, question)] : items;
}

function outgoingItem(outgoing: OutgoingQuestion): QuestionItem {
  const { requestId, reason } = outgoing;
  return {
    kind: 'question',
    id: requestId,
    at: outgoing.askedAt,
    turnId: null,
    entryId: null,
    text: outgoing.text,
    erased: false,
    fromSlack: false,
    status: outgoing.phase === 'sending' ? { kind: 'sending' } : { kind: 'unsent', reason, requestId },
    stopping: false,
    deleting: false,
  };
}

/** The running turn of a conversation, if any (rule R1: at most one). */
export function runningTurn(state: ChatState, conversationId: string | null): Turn | null {
  for (const turn of Object.values(state.turns)) {
    if (turn.conversationId === conversationId && turn.status === 'RUNNING') return turn;
  }
  return null;
}

/** What a group's items were made of. While it is the same they are, too. */
interface Made {
  inputs: readonly unknown[];
  items: readonly TimelineItem[];
}

function inputsOf({ turn, entries }: Group, { state, places, busy }: Around): readonly unknown[] {
  const wishes = entries.flatMap(({ id }) => [state.votes[id], state.erasing.includes(id)]);
  if (turn === undefined) return [...entries, ...wishes];
  const waits = turn.status === 'QUEUED' ? [places.get(turn.id), busy] : [];
  return [turn, state.live[turn.id], state.stopping.includes(turn.id), ...waits, ...entries, ...wishes];
}

function sameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}

/**
 * The timeline of one page over time. It remembers what it made: words that arrive four times a second must not cost the whole of a long
 * conversation each time.
 */
export function rememberedTimeline(): (state: ChatState, conversationId: string | null) => readonly TimelineItem[] {
  let grouped: { of: readonly unknown[]; groups: Group[] } = { of: [], groups: [] };
  let made = new Map<string, Made>();
  return (state, conversationId) => {
    const of = [state.entries, state.turns, conversationId];
    if (!sameList(of, grouped.of)) grouped = { of, groups: conversationId === null ? [] : groupsOf(state, conversationId) };
    const around: Around = { state, places: queuePlaces(grouped.groups), busy: runningTurn(state, conversationId) !== null };
    const remade = new Map<string, Made>();
    for (const group of grouped.groups) {
      const key = group.entries[0]?.id ?? '';
      const inputs = inputsOf(group, around);
      const known = made.get(key);
      remade.set(key, known !== undefined && sameList(known.inputs, inputs) ? known : { inputs, items: groupItems(group, around) });
    }
    made = remade;
    const outgoing = state.outbox.filter(({ threadId }) => (threadId ?? state.mainId) === conversationId);
    return [...[...remade.values()].flatMap(({ items }) => items), ...outgoing.map(outgoingItem)];
  };
}

/** Everything that the conversation shows. `conversationId` is null before a person's first question. */
export function timeline(state: ChatState, conversationId: string | null): readonly TimelineItem[] {
  return rememberedTimeline()(state, conversationId);
}
