/**
 * Owns: the one LISTEN connection of a server. LISTEN is lost on a failover, a restart or a half-open connection, often without an error:
 * so the connection tests itself by a word to itself, and after each (re)subscription `onGap` says that words may have been missed.
 * Does not own: what a word means, or the sweep that makes a missed one harmless (src/live).
 */
import pg from 'pg';
import { type Clock, pause } from '../../src/kernel/clock.ts';
import type { Log } from '../../src/kernel/log.ts';
import { TRANSIENT } from '../../src/kernel/transient.ts';

export interface ListenerOptions {
  readonly url: string;
  /** Unique to this server: it names the channel of the self-test. */
  readonly serverId: string;
  /** Channel name -> what to do with a payload. A handler must not throw. */
  readonly channels: Readonly<Record<string, (payload: string) => void>>;
  /** After each (re)subscription, before `connected` turns true. A rejection ends the connection, and the next one tries again. */
  readonly onGap: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  /** Between two self-tests. */
  readonly heartbeatMs?: number;
  /** Longest wait for the connection, for a statement, and for the word to itself. */
  readonly timeoutMs?: number;
}

const HEARTBEAT_MS = 10_000;
const TIMEOUT_MS = 5_000;
const GOODBYE_MS = 1_000;
const [BACKOFF_MIN_MS, BACKOFF_MAX_MS] = TRANSIENT.sessionConnection.growsMs;

export class Listener {
  readonly #options: ListenerOptions;
  readonly #stop = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  #client: pg.Client | undefined;
  #connected = false;
  #loop: Promise<void> | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** Starts listening; resolves with the first subscription (never rejects: it keeps trying). */
  start(): Promise<void> {
    this.#loop ??= this.#run();
    return this.#ready.promise;
  }

  /** True while subscribed. */
  get connected(): boolean {
    return this.#connected;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#ready.resolve();
    await this.#client?.end().catch(() => {});
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    let backoffMs: number = BACKOFF_MIN_MS;
    while (!this.#stop.signal.aborted) {
      await this.#session().catch((error: unknown) => log.error('live.listen_failed', {}, error));
      const subscribed = this.#connected;
      this.#connected = false;
      if (this.#stop.signal.aborted) return;
      backoffMs = subscribed ? BACKOFF_MIN_MS : Math.min(backoffMs * 2, BACKOFF_MAX_MS);
      log.warn('live.listen_lost', { retryInMs: backoffMs });
      await pause(clock, backoffMs * (0.5 + Math.random()), this.#stop.signal);
    }
  }

  /** One connection from start to end; `#connected` stays true afterwards when it was subscribed. */
  async #session(): Promise<void> {
    const { url, timeoutMs = TIMEOUT_MS } = this.#options;
    const client = new pg.Client({
      connectionString: url,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      application_name: 'heph-listen',
    });
    const lost = new AbortController();
    client.on('error', () => lost.abort());
    client.on('end', () => lost.abort());
    this.#client = client;
    try {
      await client.connect();
      const selfTest = this.#subscribe(client, lost);
      for (const channel of Object.keys(this.#options.channels)) await client.query(`listen ${client.escapeIdentifier(channel)}`);
      await selfTest();
      await this.#options.onGap();
      this.#connected = true;
      this.#ready.resolve();
      this.#options.log.info('live.listening');
      await this.#watch(selfTest, lost.signal);
    } finally {
      this.#client = undefined;
      client.removeAllListeners('notification');
      // A half-open connection does not say goodbye: do not wait for it.
      await Promise.race([client.end().catch(() => {}), pause(this.#options.clock, GOODBYE_MS)]);
    }
  }

  /** Routes words to their channels. Returns the self-test: it resolves when a word to itself arrives and aborts `lost` when none does. */
  #subscribe(client: pg.Client, lost: AbortController): () => Promise<void> {
    const own = `heph_self_${this.#options.serverId.replaceAll('-', '').slice(0, 32)}`;
    let heard = Promise.withResolvers<void>();
    client.on('notification', ({ channel, payload }) => {
      if (channel === own) heard.resolve();
      else this.#options.channels[channel]?.(payload ?? '');
    });
    let listening = false;
    return async () => {
      heard = Promise.withResolvers<void>();
      if (!listening) await client.query(`listen ${client.escapeIdentifier(own)}`);
      listening = true;
      await client.query('select pg_notify($1, $2)', [own, '']);
      const timer = this.#options.clock.after(this.#options.timeoutMs ?? TIMEOUT_MS, () => lost.abort());
      const gone = () => heard.resolve();
      lost.signal.addEventListener('abort', gone, { once: true });
      if (lost.signal.aborted) gone();
      await heard.promise;
      timer.cancel();
      lost.signal.removeEventListener('abort', gone);
      if (lost.signal.aborted) throw new Error('LISTEN does not hear: it needs a direct connection to PostgreSQL, not a pooler');
    };
  }

  /** Tests the subscription until it is lost. */
  async #watch(selfTest: () => Promise<void>, lost: AbortSignal): Promise<void> {
    const { clock, heartbeatMs = HEARTBEAT_MS } = this.#options;
    const over = AbortSignal.any([lost, this.#stop.signal]);
    for (;;) {
      await pause(clock, heartbeatMs, over);
      if (over.aborted) return;
      await selfTest();
    }
  }
}
