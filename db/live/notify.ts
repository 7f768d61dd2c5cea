/**
 * Owns: the side connection that sends words to the other servers, many in one statement. Never used inside a transaction of the ledger: a
 * NOTIFY there would serialize the commits of all conversations (DESIGN section 5).
 * A word is a hint, so its commit waits for no flush, and a send that fails is the caller's to repeat or to forget.
 */
import pg from 'pg';
import { databaseFault } from '../faults.ts';
import { fits, type Message } from './payloads.ts';

/** Longest wait for the connection or for one batch. */
const TIMEOUT_MS = 5_000;

export class Notifier {
  readonly #url: string;
  #client: Promise<pg.Client> | undefined;
  #closed = false;

  /** Connects with the first batch, and again after a failure. */
  constructor(url: string) {
    this.#url = url;
  }

  /** One statement, one commit. Rejects with a fault when nothing, or an unknown part, was sent. */
  async send(messages: readonly Message[]): Promise<void> {
    const tooLong = messages.find(({ payload }) => !fits(payload));
    if (tooLong) throw new RangeError(`a payload for ${tooLong.channel} is longer than PostgreSQL takes`);
    if (messages.length === 0 || this.#closed) return;
    this.#client ??= this.#connect();
    const connecting = this.#client;
    try {
      const client = await connecting;
      await client.query({
        name: 'live_notify',
        text: 'select count(pg_notify(m.channel, m.payload)) from unnest($1::text[], $2::text[]) as m(channel, payload)',
        values: [messages.map(({ channel }) => channel), messages.map(({ payload }) => payload)],
      });
    } catch (error) {
      if (this.#client === connecting) this.#client = undefined;
      await connecting.then((client) => client.end()).catch(() => {});
      throw databaseFault(error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client?.then((client) => client.end()).catch(() => {});
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url,
      keepAlive: true,
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
      application_name: 'heph-notify',
      options: '-c synchronous_commit=off',
    });
    client.on('error', () => {
      this.#client = undefined; // lost while idle: the next batch connects anew
    });
    await client.connect();
    return client;
  }
}
