/**
 * Owns: a small model of the ledger as the page's specs need it: rows, what the stream says about each change, snapshots and pages.
 * Does not own: any rule; it only does what the real one may do (one running turn, attempts, hand-overs, ends that carry the answers).
 */
import type { Partial, Snapshot } from '../../src/contract/events.ts';
import type { Conversation, Entry, EntryPage, Turn } from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import type { PageQuery } from '../../src/web/net/api.ts';

export type LedgerEvent =
  | { type: 'turn'; turn: Turn }
  | { type: 'entry'; entry: Entry }
  | { type: 'partial'; partial: Partial }
  | { type: 'read'; conversationId: string; lastReadAt: string };

/** What a thread is about. */
export interface ThreadParent {
  readonly conversationId: string;
  readonly entry: Entry;
}

const FAULT = { code: 'ERROR', text: 'Hephaestus could not finish this reply. Try again.' };
const specTime = '2026-10-08T07:12:03.120Z';

export class WebLedger {
  readonly conversationId = uuidv7();
  readonly turns: Turn[] = [];
  readonly entries: Entry[] = [];
  /** Everything that the stream was told, oldest first. */
  readonly log: LedgerEvent[] = [];
  lastReadAt: string | null = null;
  readonly #partials = new Map<string, Partial>();
  readonly #epochs = new Map<string, number>();
  readonly #now: () => string;
  /** A stopped turn whose loop has not ended yet: the next one waits for it. */
  #grace: Turn | null = null;

  readonly #parent: ThreadParent | null;
  readonly #createdAt: string;

  /**
   * @param now ISO time of what happens
   * @param parent null: it is a main conversation
   */
  constructor(now: () => string = () => specTime, parent: ThreadParent | null = null) {
    this.#now = now;
    this.#parent = parent;
    this.#createdAt = now();
  }

  get running(): Turn | undefined {
    return this.turns.find((turn) => turn.status === 'RUNNING');
  }

  /** A repeated requestId is the same question (rule R2). */
  ask(requestId: string, text: string): { entry: Entry; turn: Turn } {
    let turn = this.turns.find((candidate) => candidate.requestId === requestId);
    if (turn === undefined) {
      turn = this.#newTurn(requestId);
      turn.questionEntryId = this.#append(turn, 'question', text).id;
      this.turns.push(turn);
      this.#tell(turn);
    }
    const entry = this.entries.find((candidate) => candidate.id === turn.questionEntryId) as Entry;
    return structuredClone({ entry, turn });
  }

  /** Every slot of the installation is taken: the turn waits at this place. */
  wait(turnId: string, position: number): void {
    const turn = this.turns.find((candidate) => candidate.id === turnId);
    if (turn?.status !== 'QUEUED') return;
    Object.assign(turn, { waitingFor: 'FREE_HEPH', position });
    this.#tell(turn);
  }

  claim(): void {
    const turn = this.turns.find((candidate) => candidate.status === 'QUEUED' && candidate.waitingFor === null);
    if (this.running !== undefined || this.#grace !== null || turn === undefined) return;
    const epoch = (this.#epochs.get(turn.id) ?? 0) + 1;
    this.#epochs.set(turn.id, epoch);
    Object.assign(turn, { status: 'RUNNING', attempt: turn.attempt + 1, startedAt: turn.startedAt ?? this.#now() });
    this.#tell(turn);
    this.write('');
  }

  /** The running loop reports more words. */
  write(text: string, stage: string | null = 'Thinking…'): void {
    const turn = this.running;
    if (turn === undefined) return;
    const epoch = this.#epochs.get(turn.id) ?? 1;
    const offset = this.#partials.get(turn.id)?.text.length ?? 0;
    const whole = (this.#partials.get(turn.id)?.text ?? '') + text;
    const common = { conversationId: this.conversationId, turnId: turn.id, epoch, stage };
    this.#partials.set(turn.id, { ...common, offset: 0, text: whole });
    this.log.push({ type: 'partial', partial: { ...common, offset, text } });
  }

  /** The running attempt is lost, or handed on (then it does not count). */
  requeue(how: 'lost' | 'handed-on'): void {
    const turn = this.running;
    if (turn === undefined) return;
    this.#partials.delete(turn.id);
    Object.assign(turn, { status: 'QUEUED', attempt: turn.attempt - (how === 'handed-on' ? 1 : 0) });
    this.#tell(turn);
  }

  /** The running turn ends: all its answers, or none when it failed (rule R7). */
  end(status: 'DONE' | 'FAILED', answers: readonly string[], why: Turn['error'] = FAULT): void {
    const turn = this.running;
    if (turn === undefined) return;
    this.#partials.delete(turn.id);
    const error = status === 'FAILED' ? why : null;
    Object.assign(turn, { status, endedAt: this.#now(), error });
    this.#tell(turn);
    if (status === 'DONE') for (const text of answers) this.#append(turn, 'answer', text);
  }

  /** A person stops a turn; a running one's loop still has to end (`endStopped`). */
  stop(turn: Turn): void {
    if (turn.status !== 'QUEUED' && turn.status !== 'RUNNING') return;
    if (turn.status === 'RUNNING') this.#grace = turn;
    this.#partials.delete(turn.id);
    Object.assign(turn, { status: 'STOPPED', endedAt: this.#now(), waitingFor: null, position: null });
    this.#tell(turn);
  }

  /** The stopped loop ends with the cut-off answer, or is taken back without one (null). */
  endStopped(answer: string | null): void {
    if (this.#grace !== null && answer !== null) this.#append(this.#grace, 'answer', answer);
    this.#grace = null;
  }

  /** The read marker moves forward only. */
  read(lastReadAt: string): void {
    if (this.lastReadAt !== null && lastReadAt <= this.lastReadAt) return;
    this.lastReadAt = lastReadAt;
    this.log.push({ type: 'read', conversationId: this.conversationId, lastReadAt });
  }

  erase(entry: Entry): void {
    Object.assign(entry, { text: '', parts: [], erasedAt: this.#now() });
    this.log.push({ type: 'entry', entry: structuredClone(entry) });
  }

  vote(entry: Entry, vote: Entry['vote']): void {
    Object.assign(entry, { vote });
    this.log.push({ type: 'entry', entry: structuredClone(entry) });
  }

  /** The conversation as a snapshot describes it. */
  conversation(): Conversation {
    const latest = this.turns.findLast((turn) => turn.endedAt !== null);
    const turns = this.turns.filter((turn) => turn.endedAt === null || turn === latest);
    const parent = this.#parent;
    const ids = { id: this.conversationId, parentConversationId: parent?.conversationId ?? null, parentEntryId: parent?.entry.id ?? null };
    const lastAnswerAt = this.entries.findLast((entry) => entry.kind === 'answer')?.createdAt ?? null;
    return structuredClone({
      ...ids,
      ...(parent === null ? {} : { title: parent.entry.text.split('\n', 1)[0]?.slice(0, 80) ?? '' }),
      latestSeq: this.entries.length,
      lastAnswerAt,
      lastReadAt: this.lastReadAt,
      createdAt: this.#createdAt,
      turns,
    });
  }

  /** @param threads the other conversations of the account */
  snapshot(...threads: readonly WebLedger[]): Snapshot {
    const shown = [...(this.entries.length === 0 ? [] : [this]), ...threads];
    return structuredClone({
      conversations: shown.map((ledger) => ledger.conversation()),
      partials: shown.flatMap((ledger) => [...ledger.#partials.values()]),
    });
  }

  /** The newest `limit` entries before `before`, with their turns; everything by default. */
  page(before = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY): EntryPage {
    const older = this.entries.filter((entry) => entry.seq < before);
    const entries = older.slice(Math.max(0, older.length - limit));
    const turns = this.turns.filter((turn) => entries.some((entry) => entry.turnId === turn.id));
    return structuredClone({ entries, nextBefore: entries.length < older.length ? (entries[0]?.seq ?? null) : null, turns });
  }

  /** A page as the server would answer this query. */
  pageOf(query: PageQuery): EntryPage {
    if (!('after' in query)) return this.page(query.before ?? undefined, query.limit);
    const newer = this.entries.filter((entry) => entry.seq > query.after);
    const entries = newer.slice(0, query.limit);
    const turns = this.turns.filter((turn) => entries.some((entry) => entry.turnId === turn.id));
    const nextAfter = entries.length < newer.length ? (entries.at(-1)?.seq ?? null) : null;
    return structuredClone({ entries, nextBefore: entries[0]?.seq ?? null, nextAfter, turns });
  }

  /** What a page must show, one line each: `?` a question and what it waits for, `!` an answer, `~` one being written, `x` a failure. */
  lines(): string[] {
    const waiting = this.turns.filter((turn) => turn.status === 'QUEUED');
    return this.turns.flatMap((turn) => {
      const [question, ...answers] = this.entries.filter((entry) => entry.turnId === turn.id);
      let status = 'none';
      if (turn.status === 'QUEUED') {
        const place = waiting.indexOf(turn) + 1;
        status = this.running !== undefined || place > 1 ? `queued ${place}` : 'starting';
      }
      if (turn.status === 'STOPPED' && answers.length === 0) status = 'stopped';
      const lines = [`? ${question?.text} [${status}]`];
      for (const answer of answers) lines.push(`! ${answer.text} [${turn.status === 'STOPPED' ? 'stopped' : 'done'}]`);
      if (turn.status === 'RUNNING') lines.push(`~ ${this.#partials.get(turn.id)?.text}`);
      if (turn.status === 'FAILED') lines.push(`x ${turn.error?.text}`);
      return lines;
    });
  }

  #newTurn(requestId: string): Turn {
    const ids = { id: uuidv7(), conversationId: this.conversationId, questionEntryId: '', requestId };
    const open = { waitingFor: null, position: null, stage: null, error: null, startedAt: null, endedAt: null };
    return { ...ids, ...open, status: 'QUEUED', attempt: 0, createdAt: this.#now() };
  }

  #append(turn: Turn, kind: 'question' | 'answer', text: string): Entry {
    const ids = { id: uuidv7(), conversationId: this.conversationId, seq: this.entries.length + 1, turnId: turn.id };
    const parts = kind === 'answer' ? [{ type: 'text' as const, text }] : [];
    const entry: Entry = { ...ids, kind, surface: 'app', text, parts, createdAt: this.#now(), erasedAt: null, vote: null };
    this.entries.push(entry);
    this.log.push({ type: 'entry', entry: structuredClone(entry) });
    return entry;
  }

  #tell(turn: Turn): void {
    this.log.push({ type: 'turn', turn: structuredClone(turn) });
  }
}
