/**
 * Owns: the open streams of one account in one workspace, and what they have not been told yet.
 */
import type { MemberKey } from '../../db/web/membership.ts';
import type { Change } from '../contract/changes.ts';
import type { LiveStream } from './live-stream.ts';

/** What the pump reads for an account in one go. */
export interface Work {
  readonly turnIds: readonly string[];
  readonly entryIds: readonly string[];
  readonly markIds: readonly string[];
  readonly snapshotFor: readonly LiveStream[];
}

/** Ids that wait to be read; with more (a large erasure) a snapshot is cheaper. */
const PENDING_MAX = 500;
/** Waiting turns whose last event is remembered. */
const REMEMBERED_MAX = 64;

export function keyOf(member: { readonly workspaceId: string; readonly accountId: string }): string {
  return `${member.workspaceId} ${member.accountId}`;
}

export class Audience {
  readonly member: MemberKey;
  readonly key: string;
  readonly streams = new Set<LiveStream>();
  /** Reads for this account that failed in a row, although the database answers. */
  failures = 0;
  readonly #turnIds = new Set<string>();
  readonly #entryIds = new Set<string>();
  readonly #markIds = new Set<string>();
  readonly #lastWaiting = new Map<string, string>();

  constructor(member: MemberKey) {
    this.member = member;
    this.key = keyOf(member);
  }

  get hasWork(): boolean {
    if (this.streams.size === 0) return false;
    if (this.#turnIds.size + this.#entryIds.size + this.#markIds.size > 0) return true;
    return [...this.streams].some((stream) => stream.state === 'owed');
  }

  changed(change: Change): void {
    for (const id of change.turnIds) this.#turnIds.add(id);
    for (const id of change.entryIds) this.#entryIds.add(id);
    if (change.read) this.#markIds.add(change.conversationId);
    if (this.#turnIds.size + this.#entryIds.size + this.#markIds.size > PENDING_MAX) this.oweAll();
  }

  /** The turn may wait for another reason now. */
  turnMayWait(turnId: string): void {
    this.#turnIds.add(turnId);
  }

  /** A snapshot for everybody, which says all that was still to be said. */
  oweAll(): void {
    this.#clear();
    for (const stream of this.streams) stream.owe();
  }

  takeWork(): Work {
    const snapshotFor = [...this.streams].filter((stream) => stream.state === 'owed');
    const work = { turnIds: [...this.#turnIds], entryIds: [...this.#entryIds], markIds: [...this.#markIds], snapshotFor };
    this.#clear();
    return work;
  }

  /** True when a waiting turn's event says the same as its last one: changes of the slots concern every waiting turn, often without effect. */
  isRepeat(turnId: string, json: string, waiting: boolean): boolean {
    const repeat = this.#lastWaiting.get(turnId) === json;
    this.#lastWaiting.delete(turnId);
    if (waiting) this.#lastWaiting.set(turnId, json);
    if (this.#lastWaiting.size > REMEMBERED_MAX) {
      for (const oldest of this.#lastWaiting.keys()) {
        this.#lastWaiting.delete(oldest);
        break;
      }
    }
    return waiting && repeat;
  }

  /** A reader got a snapshot, which may say something else about waiting turns than their last events: their next ones are no repeats. */
  snapshotSent(): void {
    this.#lastWaiting.clear();
  }

  #clear(): void {
    this.#turnIds.clear();
    this.#entryIds.clear();
    this.#markIds.clear();
  }
}
