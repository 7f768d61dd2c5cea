/**
 * Owns: the sweep that makes a lost word harmless. Every 1.5 s the versions of what is looked at or held here are compared with what was heard;
 * a hole is cured by a snapshot for the streams and a word to the actors.
 * A word may still be under way when the rows already show its change, so a hole counts only after a moment's grace.
 */

import { type ConversationVersion, readVersions } from '../../db/live/read-versions.ts';
import type { Database } from '../../db/pool.ts';
import { type Clock, pause, type Timer } from '../kernel/clock.ts';
import type { ConversationId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { LiveHub } from './hub.ts';
import type { VersionBook } from './version-book.ts';

export interface CatchUpOptions {
  readonly db: Database;
  readonly hub: LiveHub;
  readonly feed: ChangeFeed;
  readonly book: VersionBook;
  /** Conversations whose actors are in memory here. */
  readonly activeConversationIds: () => Iterable<ConversationId>;
  readonly clock: Clock;
  readonly log: Log;
}

/** With the grace, a change of which no word came is shown before 2 s are over. */
const SWEEP_EVERY_MS = 1_500;
const GRACE_MS = 250;

export class CatchUp {
  readonly #options: CatchUpOptions;
  readonly #stop = new AbortController();
  #timer: Timer | undefined;
  #sweeping: Promise<void> | undefined;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= this.#options.clock.every(SWEEP_EVERY_MS, () => void this.sweep().catch(() => {}));
  }

  /** Compares once; a sweep that runs already serves. Rejects when the rows cannot be read. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  /**
   * Compares once, with rows that are read from now on: a sweep that runs already may have read them before words were heard again.
   * Rejects when the rows cannot be read.
   */
  async sweepAfresh(): Promise<void> {
    await this.#sweeping?.catch(() => {});
    await this.sweep();
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#stop.abort();
    await this.#sweeping?.catch(() => {});
  }

  async #sweep(): Promise<void> {
    const { book, clock, db, hub, activeConversationIds, log } = this.#options;
    book.beginSweep();
    const rows = await readVersions(db, [...activeConversationIds()], hub.members()).catch((error: unknown) => {
      log.error('live.sweep_failed', {}, error);
      throw error;
    });
    book.keep(new Set(rows.map(({ conversationId }) => conversationId)));
    const missed = ({ conversationId, version }: ConversationVersion) => book.misses(conversationId, version);
    const suspects = rows.filter(missed);
    if (suspects.length === 0) return;
    await pause(clock, GRACE_MS, this.#stop.signal);
    for (const row of suspects.filter(missed)) this.#cure(row);
  }

  #cure(row: ConversationVersion): void {
    const { book, feed, hub } = this.#options;
    book.settle(row.conversationId, row.version);
    hub.resnapshot(row);
    // Slots may have been freed out of sight too: parked pulls are looked at.
    feed.found({ ...row, turnIds: [], entryIds: [], sealedRunIds: [], slots: true });
  }
}
