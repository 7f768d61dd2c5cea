/**
 * Owns: partial answers between servers by Redis, when HEPH_REDIS_URL is set: publish and subscribe, nothing is kept there.
 * A connection that is half open says nothing, so the subscription tests itself by a word to itself; after each (re)subscription `onGap`
 * says that words may have been missed. While Redis is away no words cross; changes do (NOTIFY), so pages stay right without them.
 * Does not own: the words (partial-bus.ts), when they leave (peer-post.ts).
 * Limits: no queue of its own: what cannot be sent now is refused to the caller, which says it again later.
 */
import { Redis } from 'ioredis';
import type { Message } from '../../db/live/payloads.ts';
import { type Clock, pause, type Timer } from '../kernel/clock.ts';
import { errorKind, type Log } from '../kernel/log.ts';

export interface RedisPostOptions {
  /** `redis://` or `rediss://`. Installations that share one Redis use different database numbers: they are part of the channel's name. */
  readonly url: string;
  /** Unique to this server. */
  readonly serverId: string;
  readonly receive: (payload: string) => void;
  readonly onGap: () => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly heartbeatMs?: number;
}

const HEARTBEAT_MS = 10_000;
/** Longest wait for a connection, a command, and the word to itself. */
const TIMEOUT_MS = 5_000;
/** Short enough that words cross again within 2 s of the heal. */
const RECONNECT_MAX_MS = 1_000;

export class RedisPost {
  readonly #options: RedisPostOptions;
  readonly #channel: string;
  readonly #ownChannel: string;
  readonly #publisher: Redis;
  readonly #subscriber: Redis;
  readonly #stop = new AbortController();
  #heartbeat: Timer | undefined;
  #heard: PromiseWithResolvers<void> | undefined;
  #connected = false;

  constructor(options: RedisPostOptions) {
    this.#options = options;
    const database = Number(new URL(options.url).pathname.slice(1)) || 0;
    this.#channel = `heph:${database}:partials`;
    this.#ownChannel = `heph:${database}:self:${options.serverId}`;
    this.#publisher = this.#client('publisher');
    this.#subscriber = this.#client('subscriber');
    this.#subscriber.on('message', (channel: string, payload: string) => {
      if (channel === this.#ownChannel) this.#heard?.resolve();
      else options.receive(payload);
    });
    this.#subscriber.on('ready', () => void this.#subscribe());
    this.#subscriber.on('close', () => this.#lost());
  }

  /** True while words of other servers arrive. */
  get connected(): boolean {
    return this.#connected;
  }

  /** Connects; it is tried on until `close`, also when Redis is away now. Resolves after the first try. */
  async start(): Promise<void> {
    await Promise.all([this.#publisher, this.#subscriber].map((client) => client.connect().catch(() => {}))); // 'error' logs it
    this.#heartbeat = this.#options.clock.every(this.#options.heartbeatMs ?? HEARTBEAT_MS, () => void this.#test());
  }

  /** Rejects when Redis is away: the batch is lost, and the words are said again with a later one. */
  async send(messages: readonly Message[]): Promise<void> {
    if (messages.length === 0 || this.#stop.signal.aborted) return;
    const batch = this.#publisher.pipeline();
    for (const { payload } of messages) batch.publish(this.#channel, payload);
    const failed = (await batch.exec())?.find(([error]) => error !== null);
    if (failed?.[0]) throw failed[0];
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#heartbeat?.cancel();
    for (const client of [this.#publisher, this.#subscriber]) client.disconnect();
  }

  #client(role: string): Redis {
    const client = new Redis(this.#options.url, {
      lazyConnect: true,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      connectTimeout: TIMEOUT_MS,
      commandTimeout: TIMEOUT_MS,
      keepAlive: HEARTBEAT_MS,
      autoResubscribe: false,
      retryStrategy: (times) => (this.#stop.signal.aborted ? null : Math.min(50 * 2 ** Math.min(times, 10), RECONNECT_MAX_MS)),
    });
    let told = false;
    client.on('ready', () => {
      told = false;
    });
    client.on('error', (error: unknown) => {
      if (!told && !this.#stop.signal.aborted) this.#options.log.warn('live.redis_failed', { role, error: errorKind(error) });
      told = true;
    });
    return client;
  }

  async #subscribe(): Promise<void> {
    try {
      await this.#subscriber.subscribe(this.#channel, this.#ownChannel);
      this.#connected = true;
      this.#options.log.info('live.redis_listening');
      this.#options.onGap();
    } catch {
      this.#reconnect();
    }
  }

  /** Says a word to itself. A subscription that does not bring it is dead without a word. */
  async #test(): Promise<void> {
    if (!this.#connected || this.#heard) return;
    const heard = Promise.withResolvers<void>();
    this.#heard = heard;
    const waited = new AbortController();
    const publish = this.#publisher.publish(this.#ownChannel, '').then(() => heard.promise);
    const inTime = await Promise.race([
      publish.then(() => true),
      pause(this.#options.clock, TIMEOUT_MS, waited.signal).then(() => false),
    ]).catch(() => false);
    waited.abort();
    this.#heard = undefined;
    if (!inTime && this.#connected) this.#reconnect();
  }

  #reconnect(): void {
    this.#lost();
    if (this.#stop.signal.aborted) return;
    for (const client of [this.#publisher, this.#subscriber]) client.disconnect(true);
  }

  #lost(): void {
    if (this.#connected && !this.#stop.signal.aborted) this.#options.log.warn('live.redis_lost');
    this.#connected = false;
  }
}
