/**
 * Owns: reading what changed and sending it. One pump per server, one batch at a time: so no event is older than a snapshot or an event that
 * was sent before it, however many changes arrive meanwhile (they wait in their audiences, once each).
 * rule: R16 (rows are sent only to their owner's audience; the last read, right before the sends, says who may still see them)
 */
import { readChanges } from '../../db/live/read-changes.ts';
import type { Database } from '../../db/pool.ts';
import { type OwnedConversation, readMarks, readOpenConversations } from '../../db/web/read-conversations.ts';
import type { OwnedTurn } from '../../db/web/read-turns.ts';
import type { Snapshot } from '../contract/events.ts';
import type { Turn } from '../contract/web.ts';
import { type Clock, pause } from '../kernel/clock.ts';
import { asFault } from '../kernel/faults.ts';
import type { Log } from '../kernel/log.ts';
import { type Audience, keyOf, type Work } from './audience.ts';
import { ask, type Guard } from './guard.ts';
import { toPartial } from './live-stream.ts';
import type { PartialBus } from './partial-bus.ts';
import type { VersionBook } from './version-book.ts';

export interface PumpOptions {
  readonly db: Database;
  readonly partials: PartialBus;
  readonly book: VersionBook;
  readonly clock: Clock;
  readonly log: Log;
  readonly guard: Guard;
  /** The account cannot be served: its streams are closed. */
  readonly dismiss: (audience: Audience) => void;
}

/** Accounts that one batch serves. */
const BATCH_MAX = 50;
const RETRY_MIN_MS = 250;
/** Short enough, with its jitter, that a page is right again within 2 s of the heal. */
const RETRY_MAX_MS = 1_000;
/** Failed reads in a row, with a database that answers, before an account's streams are closed: a bug, not a bad moment. */
const FAILURES_MAX = 5;

type Rows<T> = ReadonlyMap<string, readonly T[]>;

interface Reads {
  readonly conversations: Rows<OwnedConversation>;
  readonly entries: Rows<{ readonly json: string }>;
  readonly turns: Rows<OwnedTurn>;
  readonly marks: Rows<{ readonly json: string }>;
  readonly admitted: ReadonlySet<Audience>;
}

export class Pump {
  readonly #options: PumpOptions;
  readonly #dirty = new Set<Audience>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: PumpOptions) {
    this.#options = options;
  }

  /** The audience has work, or may have. */
  wake(audience: Audience): void {
    this.#dirty.add(audience);
    this.#start();
  }

  #start(): void {
    if (this.#stop.signal.aborted || this.#running || this.#dirty.size === 0) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      this.#start(); // who was woken between the last look and this moment
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    let retryMs = RETRY_MIN_MS;
    await Promise.resolve(); // changes of one commit arrive in one go
    while (this.#dirty.size > 0 && !this.#stop.signal.aborted) {
      const batch = [...this.#dirty].slice(0, BATCH_MAX);
      for (const audience of batch) this.#dirty.delete(audience);
      const served = await this.#serve(batch.filter((audience) => audience.hasWork));
      if (!served) await pause(this.#options.clock, retryMs * (0.5 + Math.random()), this.#stop.signal);
      retryMs = served ? RETRY_MIN_MS : Math.min(retryMs * 2, RETRY_MAX_MS);
    }
  }

  /** Never rejects. False: nothing was sent, and the batch waits for another try. */
  async #serve(batch: readonly Audience[]): Promise<boolean> {
    if (batch.length === 0) return true;
    const work = new Map(batch.map((audience) => [audience, audience.takeWork()] as const));
    try {
      const reads = await this.#read(work);
      for (const [audience, one] of work) this.#send(audience, one, reads);
      return true;
    } catch (error) {
      return this.#failed(batch, error);
    }
  }

  /** What was to be said becomes a snapshot. A failure of one account must not silence the others: they are tried apart. */
  async #failed(batch: readonly Audience[], error: unknown): Promise<boolean> {
    const { code } = asFault(error);
    this.#options.log.error('live.read_failed', { code, accounts: batch.length }, error);
    for (const audience of batch) audience.oweAll();
    if (code !== 'INTERNAL') {
      for (const audience of batch) this.#dirty.add(audience);
      return false;
    }
    if (batch.length > 1) {
      for (const audience of batch) await this.#serve([audience]);
      return true;
    }
    for (const audience of batch) {
      audience.failures += 1;
      if (audience.failures >= FAILURES_MAX) this.#options.dismiss(audience);
      else this.#dirty.add(audience);
    }
    return false;
  }

  /** Snapshots first, then markers, then entries and turns: what is sent later is never older. The guard's answer comes with the last read. */
  async #read(work: ReadonlyMap<Audience, Work>): Promise<Reads> {
    const { db, guard } = this.#options;
    const all = [...work.values()];
    const wanting = [...work].filter(([, { snapshotFor }]) => snapshotFor.length > 0).map(([audience]) => audience.member);
    const conversations = await readOpenConversations(db, wanting);
    const marks = await readMarks(
      db,
      all.flatMap(({ markIds }) => markIds),
    );
    const question = ask([...work.keys()]);
    const { entries, turns, ...answer } = await readChanges(db, {
      ...{ entryIds: all.flatMap(({ entryIds }) => entryIds), turnIds: all.flatMap(({ turnIds }) => turnIds) },
      ...{ members: question.members, sessionIds: question.sessionIds },
    });
    const admitted = guard.judge(question, answer);
    return {
      conversations: byOwner(conversations),
      entries: byOwner(entries.map(({ entry, ...owner }) => ({ ...owner, json: JSON.stringify(entry) }))),
      turns: byOwner(turns),
      marks: byOwner(
        marks.map(({ conversationId, lastReadAt, ...owner }) => ({ ...owner, json: JSON.stringify({ conversationId, lastReadAt }) })),
      ),
      admitted,
    };
  }

  #send(audience: Audience, work: Work, reads: Reads): void {
    if (!reads.admitted.has(audience)) return;
    audience.failures = 0;
    if (work.snapshotFor.length > 0) this.#sendSnapshot(audience, work, reads.conversations.get(audience.key) ?? []);
    for (const { json } of reads.entries.get(audience.key) ?? []) for (const stream of audience.streams) stream.send('entry', json);
    for (const { turn } of reads.turns.get(audience.key) ?? []) this.#sendTurn(audience, turn);
    for (const { json } of reads.marks.get(audience.key) ?? []) for (const stream of audience.streams) stream.send('read', json);
  }

  #sendSnapshot(audience: Audience, work: Work, rows: readonly OwnedConversation[]): void {
    const { book, partials } = this.#options;
    for (const { conversation, version } of rows) book.begin(conversation.id, version);
    const conversations = rows.map(({ conversation }) => ({
      ...conversation,
      turns: conversation.turns.map((turn) => this.#withStage(turn)),
    }));
    const running = new Set(conversations.flatMap(({ turns }) => turns.filter(({ status }) => status === 'RUNNING').map(({ id }) => id)));
    const { workspaceId, accountId } = audience.member;
    const shown = partials.of(workspaceId, accountId).filter(({ turnId }) => running.has(turnId));
    const snapshot: Snapshot = { conversations, partials: shown.map((partial) => toPartial(partial, 0, partial.words.from(0))) };
    const json = JSON.stringify(snapshot);
    for (const stream of work.snapshotFor) if (audience.streams.has(stream)) stream.sendSnapshot(json, shown);
    audience.snapshotSent();
  }

  #sendTurn(audience: Audience, turn: Turn): void {
    const json = JSON.stringify(this.#withStage(turn));
    const over = turn.status !== 'QUEUED' && turn.status !== 'RUNNING';
    if (over) this.#options.partials.forget(turn.id);
    if (audience.isRepeat(turn.id, json, turn.status === 'QUEUED')) return;
    for (const stream of audience.streams) {
      stream.send('turn', json);
      if (over) stream.turnEnded(turn.id);
    }
  }

  #withStage(turn: Turn): Turn {
    return turn.status === 'RUNNING' ? { ...turn, stage: this.#options.partials.stageOf(turn.id) } : turn;
  }
}

function byOwner<T extends { readonly workspaceId: string; readonly accountId: string }>(rows: readonly T[]): Rows<T> {
  const owners = new Map<string, T[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const own = owners.get(key);
    if (own) own.push(row);
    else owners.set(key, [row]);
  }
  return owners;
}
