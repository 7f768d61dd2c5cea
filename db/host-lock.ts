/**
 * Owns: the session-level advisory lock by which a host of sandboxes proves that it lives (DESIGN, lifecycle). PostgreSQL frees it the moment
 * the host's connection is gone, also after kill -9. When only the connection is lost, it is taken again; the fence still decides.
 * Its pauses are short: the reaper of another server takes a host for dead that is without its lock for two looks in a row.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../src/kernel/log.ts';
import { TRANSIENT } from '../src/kernel/transient.ts';

/** Between two tries to take the lock again: 125 ms to 375 ms. */
const [RETRY_MS] = TRANSIENT.hostLock.growsMs;
const CONNECT_MAX_MS = 5_000;
/** A connection that died without a word is found by asking it. */
const HEARTBEAT_EVERY_MS = 2_000;
const HEARTBEAT_MAX_MS = 2_000;

export class HostLock {
  readonly #url: string;
  readonly #key: number;
  readonly #log: Log;
  /** Holds the lock. */
  #client: pg.Client | undefined;
  /** On its way to the lock. */
  #coming: pg.Client | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(url: string, key: number, log: Log) {
    this.#url = url;
    this.#key = key;
    this.#log = log;
  }

  /** Rejects when the database cannot be reached now; afterwards it reconnects by itself. */
  static async take(url: string, key: number, log: Log): Promise<HostLock> {
    const lock = new HostLock(url, key, log);
    await lock.#connect();
    return lock;
  }

  get held(): boolean {
    return this.#client !== undefined;
  }

  /** Frees the lock. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    await Promise.all([endQuietly(this.#client), endQuietly(this.#coming)]);
  }

  /** One try. When it fails nothing of it is left: a session that lingers would hold the lock against its successor. */
  async #connect(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#url,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      connectionTimeoutMillis: CONNECT_MAX_MS,
      application_name: 'heph-host-lock',
    });
    this.#coming = client;
    client.on('error', () => {}); // 'end' follows
    client.once('end', () => this.#ended(client));
    try {
      await client.connect();
      await client.query('select pg_advisory_lock($1::bigint)', [this.#key]);
      // A host that was taken for dead meanwhile lives after all: it may start sandboxes again.
      await client.query(
        'update sandbox_host set suspected_at = null, ended_at = null where lock_key = $1::bigint and (suspected_at is not null or ended_at is not null)',
        [this.#key],
      );
    } catch (error) {
      await endQuietly(client);
      throw error;
    } finally {
      this.#coming = undefined;
    }
    if (this.#closed) return endQuietly(client);
    this.#client = client;
    this.#heartbeat = setInterval(() => void this.#beat(client), HEARTBEAT_EVERY_MS).unref();
  }

  /** Only the loss of the lock begins a new search for it; a try that fails is part of one. */
  #ended(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    clearInterval(this.#heartbeat);
    if (!this.#closed) void this.#reconnect();
  }

  async #beat(client: pg.Client): Promise<void> {
    try {
      await client.query({ text: 'select 1', query_timeout: HEARTBEAT_MAX_MS } as pg.QueryConfig);
    } catch {
      await endQuietly(client); // its 'end' begins the search
    }
  }

  async #reconnect(): Promise<void> {
    this.#log.warn('host lock lost, taking it again', {});
    while (!this.#closed) {
      try {
        await this.#connect();
        this.#log.info('host lock taken again', {});
        return;
      } catch {
        await sleep(RETRY_MS * (0.5 + Math.random()), undefined, { ref: false });
      }
    }
  }
}

async function endQuietly(client: pg.Client | undefined): Promise<void> {
  await client?.end().catch(() => {}); // it may be gone already
}
