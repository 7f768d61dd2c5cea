/**
 * Owns: reading all rows of one moment while servers go on writing: one read-only snapshot, table by table through a cursor.
 * Until it ends, vacuum keeps what was deleted since its start, and a migration waits.
 * Does not own: the file (write-file.ts).
 */
import type { Writable } from 'node:stream';
import type pg from 'pg';
import { appliedTo, migrationNames } from '../migrate.ts';
import { backedUpTables, quoted, readNumbers, readTables, type Table, withClient } from './catalogue.ts';
import { BackupError } from './errors.ts';
import type { Row } from './format.ts';
import { type BackupSource, sendBackup, type Written, writeBackup } from './write-file.ts';

/** Rows of one fetch: as many as hold about this many characters, by those of the fetch before. */
const FETCH_CHARS = 2_000_000;
const FETCH_ROWS_MAX = 2_000;
const FETCH_ROWS_FIRST = 50;

export interface BackupReport extends Written {
  readonly migration: string;
  readonly takenAt: string;
}

export interface BackupRequest {
  /** A path, or a stream. */
  readonly to: string | Writable;
  /** Which Heph asks. */
  readonly version: string;
}

/**
 * Writes everything that the database of `url` holds.
 * @throws BackupError when the file cannot be written or the database is not of this Heph; RuntimeFault when the database does not answer.
 */
export function backup(url: string, { to, version }: BackupRequest): Promise<BackupReport> {
  return withClient(url, async (client) => {
    const tables = await openSnapshot(client);
    const migration = await ownMigration(client);
    const { rows: said } = await client.query<{ at: Date; postgres: string }>(
      `select transaction_timestamp() as at, current_setting('server_version') as postgres`,
    );
    const [{ at, postgres } = { at: new Date(0), postgres: '' }] = said;
    const takenAt = at.toISOString();
    const columns = (table: Table) => ({ name: table.name, columns: table.columns.map(({ name }) => name) });
    const source: BackupSource = {
      header: { version, migration, postgres, takenAt, tables: tables.map(columns) },
      rows: (name) => rowsOf(client, tables.find((table) => table.name === name) as Table),
      numbers: () => readNumbers(client, tables),
    };
    const written = await (typeof to === 'string' ? writeBackup(to, source) : sendBackup(to, source));
    await client.query('commit');
    return { migration, takenAt, ...written };
  });
}

/** Begins the snapshot. The locks come before it: then no migration can stand between what the catalogue says and what the rows are. */
async function openSnapshot(client: pg.Client): Promise<readonly Table[]> {
  const before = await readTables(client, backedUpTables());
  if (before.length === 0) throw new BackupError('This database holds nothing of Heph: there is nothing to back up.');
  await client.query('begin isolation level repeatable read read only');
  await client.query(`lock table ${before.map(({ name }) => quoted(name)).join(', ')} in access share mode`);
  const tables = await readTables(client, backedUpTables());
  if (JSON.stringify(tables) === JSON.stringify(before)) return tables;
  throw new BackupError('The schema was changed while the backup began. Nothing was written; start it again.');
}

async function ownMigration(client: pg.Client): Promise<string> {
  const applied = (await appliedTo(client)).at(-1) ?? 'none';
  const own = migrationNames().at(-1) ?? 'none';
  if (applied === own) return own;
  throw new BackupError(
    `The database is at migration ${applied}, and this Heph at ${own}. Nothing was written; use the Heph that runs on it, or run heph migrate first.`,
  );
}

async function* rowsOf(client: pg.Client, { name, columns }: Table): AsyncGenerator<readonly Row[]> {
  const list = columns.map((column) => `${quoted(column.name)}::text`).join(', ');
  await client.query(`declare heph_rows no scroll cursor for select ${list} from ${quoted(name)}`);
  for (let count = FETCH_ROWS_FIRST; ; ) {
    const { rows } = await client.query<(string | null)[]>({ text: `fetch forward ${count} from heph_rows`, rowMode: 'array' });
    if (rows.length === 0) break;
    yield rows;
    const chars = rows.reduce((sum, row) => sum + row.reduce((length, value) => length + (value?.length ?? 0), 0), 0);
    count = Math.max(1, Math.min(FETCH_ROWS_MAX, Math.floor((FETCH_CHARS * rows.length) / (chars + 1))));
  }
  await client.query('close heph_rows');
}
