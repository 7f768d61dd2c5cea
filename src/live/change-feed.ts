/**
 * Owns: the path of a change: to this server at once, to the others in the next batch. Words carry ids and versions only.
 * Does not own: what is done about a change (the hub, the actors, the gateway) or a change that was lost (catch-up.ts).
 */

import type { ChangeSink } from '../../actors/index.ts';
import type { Message } from '../../db/live/payloads.ts';
import type { Change } from '../contract/changes.ts';
import type { Log } from '../kernel/log.ts';
import { mergeChanges, packChanges, sinceOf, unpackChanges } from './change-wire.ts';
import type { PeerSource } from './peer-post.ts';
import type { VersionBook } from './version-book.ts';

export type ChangeListener = (change: Change) => void;

export interface ChangeFeedOptions {
  readonly serverId: string;
  readonly book: VersionBook;
  readonly log: Log;
  /** Some change waits for the next batch. */
  readonly wake: () => void;
}

/** Conversations whose changes wait for the next batch. Beyond it the oldest is dropped: the sweep of the others finds it. */
const PENDING_MAX = 10_000;
/** Changes of one conversation that wait and have holes between them. */
const PIECES_MAX = 16;

export class ChangeFeed implements ChangeSink, PeerSource {
  readonly #options: ChangeFeedOptions;
  readonly #listeners: ChangeListener[] = [];
  readonly #remoteListeners: ChangeListener[] = [];
  readonly #pending = new Map<string, Change[]>();
  #taken: readonly Change[] = [];

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  /** Every change, whoever made it. */
  onChange(listener: ChangeListener): void {
    this.#listeners.push(listener);
  }

  /** Changes that no actor of this server made: those of other servers, those found by the sweep, and moved read markers. */
  onRemoteChange(listener: ChangeListener): void {
    this.#remoteListeners.push(listener);
  }

  publish(change: Change): void {
    this.#tell(change, change.read === true);
    this.#hold(change);
    this.#options.wake();
  }

  /** A payload of the change channel. */
  receive(payload: string): void {
    const changes = unpackChanges(payload, this.#options.serverId);
    for (const change of changes ?? []) this.#tell(change, true);
  }

  /** A change that the sweep found in the rows: nobody here heard of it. The hub has a snapshot sent instead. */
  found(change: Change): void {
    for (const listener of this.#remoteListeners) this.#call(listener, change);
  }

  take(): readonly Message[] {
    this.#taken = [...this.#pending.values()].flat();
    this.#pending.clear();
    return packChanges(this.#options.serverId, this.#taken);
  }

  unsent(): void {
    const taken = this.#taken;
    this.#taken = [];
    for (const change of taken) this.#hold(change);
  }

  #tell(change: Change, remote: boolean): void {
    this.#options.book.note(change.conversationId, sinceOf(change), change.version);
    for (const listener of this.#listeners) this.#call(listener, change);
    for (const listener of remote ? this.#remoteListeners : []) this.#call(listener, change);
  }

  #call(listener: ChangeListener, change: Change): void {
    try {
      listener(change);
    } catch (error) {
      this.#options.log.error('live.listener_failed', { conversationId: change.conversationId }, error);
    }
  }

  #hold(change: Change): void {
    const held = this.#pending.get(change.conversationId) ?? [];
    const last = held.at(-1);
    const merged = last && mergeChanges(last, change);
    if (merged) held[held.length - 1] = merged;
    else held.push(change);
    if (held.length > PIECES_MAX) held.shift();
    this.#pending.set(change.conversationId, held);
    if (this.#pending.size <= PENDING_MAX) return;
    for (const oldest of this.#pending.keys()) {
      this.#pending.delete(oldest);
      this.#options.log.warn('live.change_dropped', { conversationId: oldest });
      return;
    }
  }
}
