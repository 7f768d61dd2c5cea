/**
 * Owns: watching that paths keep their bytes: each path that is given out is compared with the one before it, after the sandbox was answered.
 * A difference that nobody declared is counted and logged, with ids only: it costs every later turn its cache, and it is a fault of ours.
 * rule: R13
 */
import { replacePrint } from '../../db/context/path-prints.ts';
import type { ContextFacts } from '../../db/context/read-facts.ts';
import type { Executor } from '../../db/pool.ts';
import { type Clock, pause } from '../kernel/clock.ts';
import { errorKind, type Log } from '../kernel/log.ts';
import type { Path } from './path.ts';
import { decodeEntries, encodeEntries, firstBreak, type PathPrint, printOf } from './path-print.ts';

/** Told of each path that does not start as the one before it. `system`: only the system prompt differs (another version of the program). */
export type BreakObserver = (part: 'path' | 'system') => void;

export interface GivenPath {
  readonly facts: Pick<ContextFacts, 'workspaceId' | 'conversationId' | 'turnId' | 'questionSeq' | 'timeZone' | 'thread' | 'now'>;
  /** With the question as its last entry. */
  readonly path: Path;
  readonly systemPrompt: string;
}

/** The sandbox has its answer by then, and the model its request. */
const AFTER_MS = 100;
/** An entry that was committed a little after its time was taken was not seen by a path that was read between the two. */
const COMMIT_MAX_MS = 60_000;
/** Comparisons that wait. One more is left out: the next turn compares with an older path. */
const WAITING_MAX = 1_000;

export interface PathWatchDeps {
  readonly db: Executor;
  readonly log: Log;
  readonly clock: Clock;
  readonly onBreak: BreakObserver;
  /** How long after the path was taken it is looked at, milliseconds. */
  readonly afterMs?: number;
}

export class PathWatch {
  readonly #db: Executor;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #onBreak: BreakObserver;
  readonly #afterMs: number;
  readonly #running = new Set<Promise<void>>();

  constructor(deps: PathWatchDeps) {
    this.#db = deps.db;
    this.#log = deps.log;
    this.#onBreak = deps.onBreak;
    this.#clock = deps.clock;
    this.#afterMs = deps.afterMs ?? AFTER_MS;
  }

  /** Takes a path that is about to be given out; it is looked at when the answer is on its way. */
  note(given: GivenPath): void {
    if (this.#running.size >= WAITING_MAX) return;
    const looked = pause(this.#clock, this.#afterMs).then(() => this.#look(given));
    const settled = looked
      .catch((error: unknown) => this.#log.warn('path.not_compared', { turnId: given.facts.turnId, error: errorKind(error) }))
      .finally(() => this.#running.delete(settled));
    this.#running.add(settled);
  }

  /** Resolves when everything noted so far has been looked at. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #look({ facts, path, systemPrompt }: GivenPath): Promise<void> {
    const { workspaceId, conversationId, turnId, questionSeq, timeZone } = facts;
    const current = printOf(path, { timeZone, systemPrompt });
    const previous = await replacePrint(this.#db, {
      ...{ workspaceId, conversationId, turnId, questionSeq, timeZone, readAt: facts.now, summaryId: path.summaryId },
      systemHash: Buffer.from(current.system, 'hex'),
      entries: encodeEntries(current.entries),
    });
    if (!previous) return;
    const before: PathPrint = { ...previous, system: previous.systemHash.toString('hex'), entries: decodeEntries(previous.entries) };
    const ids = { conversationId, turnId, previousTurnId: previous.turnId };
    if (before.system !== current.system) {
      this.#onBreak('system');
      this.#log.info('path.system_prompt_changed', ids);
    }
    // Only before the parent of a thread may something be written between two turns of one conversation.
    const sinceMs = facts.thread === null ? Number.POSITIVE_INFINITY : Date.parse(previous.readAt) - COMMIT_MAX_MS;
    const added = path.entries.filter(({ writtenAt }) => Date.parse(writtenAt) >= sinceMs).map(({ entry }) => entry.id);
    const broken = firstBreak(before, current, { erasedIds: new Set(path.erasedIds), addedIds: new Set(added) });
    if (!broken) return;
    this.#onBreak('path');
    this.#log.warn('path.broken', { ...ids, entryId: broken.entryId, index: broken.index });
  }
}
