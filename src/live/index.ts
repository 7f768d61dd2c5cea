/**
 * The door of src/live: everything that makes an open page move, put together. main.ts creates it before the actors (they publish into it)
 * and starts it after them (it tells them what others changed).
 */
import { Listener } from '../../db/live/listener.ts';
import { Notifier } from '../../db/live/notify.ts';
import type { Database } from '../../db/pool.ts';
import { type Clock, pause } from '../kernel/clock.ts';
import { type ConversationId, uuidv7 } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { CatchUp } from './catch-up.ts';
import { ChangeFeed } from './change-feed.ts';
import { CHANGE_CHANNEL } from './change-wire.ts';
import { LiveHub } from './hub.ts';
import { PartialBus } from './partial-bus.ts';
import { PARTIAL_CHANNEL } from './partial-wire.ts';
import { PeerPost } from './peer-post.ts';
import { RedisPost } from './redis-post.ts';
import { VersionBook } from './version-book.ts';

export type { ChangeFeed, ChangeListener } from './change-feed.ts';
export type { LiveHub } from './hub.ts';
export type { PartialBus } from './partial-bus.ts';
export type { StreamSink } from './ports.ts';

export interface LiveOptions {
  readonly db: Database;
  /** Direct, not through a pooler in transaction mode. */
  readonly databaseUrl: string;
  /** Carries partial answers between servers; null: NOTIFY does. */
  readonly redisUrl: string | null;
  /** Conversations whose actors are in memory here; the sweep watches their versions. */
  readonly activeConversationIds: () => Iterable<ConversationId>;
  readonly streamsPerAccountMax: number;
  readonly pingMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Live {
  /** Give it to the actors as their ChangeSink; register onRemoteChange here. */
  readonly changes: ChangeFeed;
  /** Give it to the actors as their PartialSink. */
  readonly partials: PartialBus;
  readonly hub: LiveHub;
  /** Words of other servers may have been missed; called after each (re)subscription, when the sweep is through. */
  onGap(listener: () => void): void;
  /** Starts listening and sweeping; resolves with the first subscription, or after 5 s without one: the sweep works, and it is tried on. */
  start(): Promise<void>;
  /** True while words of other servers arrive. */
  listening(): boolean;
  /** True while partial answers of other servers arrive by Redis; null without Redis. */
  redisConnected(): boolean | null;
  /** Closes the streams with a hint, says what is left to say to the other servers, and closes the connections. */
  stop(): Promise<void>;
}

/** A pooler that loses LISTEN must not keep a server from starting: readiness says so. */
const LISTEN_WAIT_MS = 5_000;

export function createLive(options: LiveOptions): Live {
  const { databaseUrl, redisUrl, clock, log } = options;
  const serverId = uuidv7<'server'>();
  const book = new VersionBook();
  const notifier = new Notifier(databaseUrl);
  const post = new PeerPost({ send: (messages) => notifier.send(messages), clock, log });
  const changes = new ChangeFeed({ serverId, book, log, wake: () => post.wake() });
  post.add(changes);
  const partials: PartialBus = new PartialBus({ serverId, clock, wake: () => partialPost.wake() });
  const redis = redisUrl === null ? null : openRedis({ ...options, redisUrl, serverId, partials });
  const partialPost = redis === null ? post : new PeerPost({ send: (messages) => redis.send(messages), clock, log });
  partialPost.add(partials);
  const hub = new LiveHub({ ...options, partials, book });
  changes.onChange((change) => hub.changed(change));
  const catchUp = new CatchUp({ ...options, hub, feed: changes, book });
  const gapListeners: (() => void)[] = [];
  const onGap = async () => {
    await catchUp.sweepAfresh();
    if (redis === null) partials.missed();
    for (const listener of gapListeners) listener();
  };
  const channels = {
    [CHANGE_CHANNEL]: (payload: string) => changes.receive(payload),
    [PARTIAL_CHANNEL]: (payload: string) => partials.receive(payload),
  };
  const listener = new Listener({ url: databaseUrl, serverId, channels, onGap, clock, log });
  return {
    changes,
    partials,
    hub,
    onGap: (gapListener) => void gapListeners.push(gapListener),
    async start() {
      catchUp.start();
      await Promise.race([Promise.all([listener.start(), redis?.start()]), pause(clock, LISTEN_WAIT_MS)]);
    },
    listening: () => listener.connected,
    redisConnected: () => redis?.connected ?? null,
    async stop() {
      await hub.drain();
      await catchUp.stop();
      for (const one of new Set([post, partialPost])) await one.close();
      await redis?.close();
      await listener.close();
      await notifier.close();
      partials.close();
    },
  };
}

function openRedis(options: LiveOptions & { redisUrl: string; serverId: string; partials: PartialBus }): RedisPost {
  const { redisUrl: url, serverId, partials, clock, log } = options;
  const receive = (payload: string) => partials.receive(payload);
  return new RedisPost({ url, serverId, receive, onGap: () => partials.missed(), clock, log });
}
