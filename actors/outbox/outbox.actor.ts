/**
 * Owns: the OutboxActor of a server: at each look it takes for uncertain what a dead server was sending, parks what cannot be sent, gives one
 * reading to a channel's actor, and wakes the channels in which something is due. Servers do not coordinate: rows that are locked are skipped.
 */
import type { Database } from '../../db/pool.ts';
import {
  type ChannelKey,
  dueChannels,
  expireLeases,
  hasOpenActions,
  type LeasedAction,
  type OutboxTimes,
  parkUnconnected,
  takeReading,
} from '../../db/slack/outbox.ts';
import type { Log } from '../../src/kernel/log.ts';
import type { Behaviour } from '../kernel/index.ts';

export type OutboxCommand = { readonly type: 'Look' };

export interface OutboxDeps {
  readonly db: Database;
  readonly log: Log;
  readonly times: OutboxTimes;
  /** Something is due there. */
  wake(channel: ChannelKey): void;
  read(action: LeasedAction): void;
}

const BATCH_MAX = 200;

export class OutboxBehaviour implements Behaviour<null, OutboxCommand, undefined> {
  readonly #deps: OutboxDeps;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  async load(): Promise<null> {
    return null;
  }

  async handle(): Promise<{ state: null; reply: undefined }> {
    const { db, log, times } = this.#deps;
    if (!(await hasOpenActions(db))) return { state: null, reply: undefined };
    const expired = await expireLeases(db, BATCH_MAX, times);
    if (expired > 0) log.warn('outbox attempts lost', { expired });
    const parked = await parkUnconnected(db, BATCH_MAX);
    if (parked > 0) log.warn('outbox actions parked', { parked, why: 'not_connected' });
    const reading = await takeReading(db, times);
    if (reading) this.#deps.read(reading);
    for (const channel of await dueChannels(db, BATCH_MAX)) this.#deps.wake(channel);
    return { state: null, reply: undefined };
  }
}
