/**
 * Owns: the database's own change log (a logical slot with `test_decoding`): every commit, in the order of commits, also of transactions that
 * no trigger and no reader saw. What PostgreSQL lost in a crash is not in it, and what it kept is, whatever the servers believe.
 * A slot keeps the log from being thrown away and its database from being dropped: close it first. It survives a crash of PostgreSQL.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { pause, systemClock } from '../../src/kernel/clock.ts';
import { type Commit, type LogLine, readCommits } from './test-decoding.ts';

export class ChangeLog {
  readonly #url: string;
  readonly #slot: string;
  readonly #tables: ReadonlySet<string>;
  #readTo = 0n;

  private constructor(url: string, slot: string, tables: ReadonlySet<string>) {
    this.#url = url;
    this.#slot = slot;
    this.#tables = tables;
  }

  /** From now on every commit that touches `tables` is kept. null: this PostgreSQL does not run with `wal_level = logical`. */
  static async open(url: string, tables: readonly string[]): Promise<ChangeLog | null> {
    const slot = `heph_spec_${randomUUID().slice(0, 8)}`;
    const level = await query(url, 'show wal_level');
    if (level[0]?.['wal_level'] !== 'logical') return null;
    await query(url, `select pg_create_logical_replication_slot($1, 'test_decoding')`, [slot]);
    return new ChangeLog(url, slot, new Set(tables));
  }

  /** What has been committed since the last read. */
  async next(): Promise<readonly Commit[]> {
    // A commit that waits for its flush takes with it those before it that did not.
    await query(this.#url, `select pg_logical_emit_message(true, 'heph', 'flush')`);
    // Looked at, and moved on only afterwards: a reply that is lost with its connection would take its commits with it.
    const lines = (await query(
      this.#url,
      `select lsn::text, data from pg_logical_slot_peek_changes($1, null, null, 'include-timestamp', 'on', 'skip-empty-xacts', 'on')`,
      [this.#slot],
    )) as unknown as readonly LogLine[];
    const lastLine = lines.at(-1);
    if (lastLine) await query(this.#url, 'select pg_replication_slot_advance($1, $2::pg_lsn)', [this.#slot, lastLine.lsn]);
    // After a crash a slot may begin again before what was read.
    const commits = readCommits(lines, this.#tables).filter(({ lsn }) => lsn > this.#readTo);
    this.#readTo = commits.at(-1)?.lsn ?? this.#readTo;
    return commits;
  }

  async close(): Promise<void> {
    await query(this.#url, 'select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1', [this.#slot]);
  }
}

const CONNECT_MAX_MS = 5_000;
const READ_MAX_MS = 60_000;

/** PostgreSQL that was killed takes connections for a moment before the postmaster ends them all; then it refuses them until it has recovered. */
const AWAY = /terminated|ECONNRE|recovery mode|starting up|shutting down/;
const AWAY_MAX_MS = 60_000;
const RETRY_MS = 50;

/** On a connection of its own: the log is also read right after PostgreSQL was killed. Each query may be sent again. */
async function query(url: string, text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
  const givenUpAtMs = performance.now() + AWAY_MAX_MS;
  for (;;) {
    try {
      return await queryOnce(url, text, values);
    } catch (error) {
      if (performance.now() > givenUpAtMs || !(error instanceof Error) || !AWAY.test(error.message)) throw error;
      await pause(systemClock, RETRY_MS);
    }
  }
}

async function queryOnce(url: string, text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MAX_MS,
    query_timeout: READ_MAX_MS,
    options: '-c timezone=UTC -c synchronous_commit=on',
    application_name: 'heph-change-log',
  });
  client.on('error', () => undefined); // the query rejects
  await client.connect();
  try {
    return (await client.query(text, [...values])).rows;
  } finally {
    await client.end();
  }
}
