/**
 * Owns: the session-level advisory lock by which a host of sandboxes proves that it lives (DESIGN, lifecycle). PostgreSQL frees it the moment
 * the host's connection is gone, also after kill -9. When only the connection is lost, it is taken again; the fence still decides.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../src/kernel/log.ts';

export class HostLock {
  readonly #url: string;
  readonly #key: number;
  readonly #log: Log;
  #client: pg.Client | undefined;
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

  async #connect(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#url,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      connectionTimeoutMillis: 5_000,
      application_name: 'heph-host-lock',
    });
    client.on('error', () => {}); // 'end' follows
    client.once('end', () => {
      if (this.#client === client) this.#client = undefined;
      if (!this.#closed) void this.#reconnect();
    });
    await client.connect();
    await client.query('select pg_advisory_lock($1::bigint)', [this.#key]);
    await client.query('update sandbox_host set suspected_at = null where lock_key = $1::bigint and suspected_at is not null', [this.#key]);
    if (this.#closed) return client.end();
    this.#client = client;
  }

  async #reconnect(): Promise<void> {
    this.#log.warn('host lock lost, taking it again');
    for (let waitMs = 100; !this.#closed; waitMs = Math.min(waitMs * 2, 2_000)) {
      try {
        await this.#connect();
        return;
      } catch {
        await sleep(waitMs * (0.5 + Math.random()), undefined, { ref: false });
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client?.end();
  }
}
