/**
 * Owns: filling an empty database from a file, all of it or nothing.
 * The file is read to its end before anything is touched. The schema is brought to where the backup was taken, the rows go in by one
 * transaction, then the newer migrations change them as they would have changed the original.
 * Foreign keys form cycles: they are dropped before the rows and added, which checks them, after. That needs the owner of the tables and no
 * superuser, so a database that somebody else manages will do. All other constraints and triggers are in force.
 */
import type pg from 'pg';
import { appliedTo, migrate, migrationNames } from '../migrate.ts';
import { backedUpTables, type Column, identities, quoted, readForeignKeys, readTables, type Table, withClient } from './catalogue.ts';
import { BackupError } from './errors.ts';
import type { BackupEnd, BackupHeader, Row } from './format.ts';
import { checkBackup, readBackup } from './read-file.ts';
import { type Rewound, rewind } from './rewind.ts';

/** Rows of one insert. */
const BATCH_ROWS_MAX = 1_000;
const BATCH_CHARS_MAX = 4_000_000;
const LOCK_TIMEOUT_MS = 10_000;
const NOTHING = 'Nothing was restored.';

export interface RestoreReport extends Rewound {
  readonly header: BackupHeader;
  readonly rows: BackupEnd['rows'];
  /** Migrations that are newer than the backup, and were applied to its rows. */
  readonly migrated: readonly string[];
}

/** A file that was read to its end, and is of a schema that this Heph knows. */
export interface WholeBackup {
  readonly file: string;
  readonly header: BackupHeader;
  readonly rows: BackupEnd['rows'];
}

/** Reads a whole file and touches no database. @throws BackupError which says why it cannot be restored. */
export async function openBackup(file: string): Promise<WholeBackup> {
  const { header, end } = await checkBackup(file);
  if (!migrationNames().includes(header.migration)) {
    const why = `It was taken at migration ${header.migration} by Heph ${header.version}, which this Heph does not know`;
    throw new BackupError(`${file} is of another Heph. ${why}. ${NOTHING} Restore it with that Heph or a newer one.`);
  }
  return { file, header, rows: end.rows };
}

/**
 * Fills the database of `url`, which must be empty.
 * @throws BackupError when the database is not empty, or the file is no longer what it was; RuntimeFault when it does not answer. Then
 * nothing was restored.
 */
export async function restore(url: string, { file, header, rows }: WholeBackup): Promise<RestoreReport> {
  await withClient(url, (client) => assertRoom(client, header.migration));
  await migrate(url, header.migration);
  const rewound = await withClient(url, (client) => loadAll(client, file, header));
  const migrated = await migrate(url);
  // Plans are made once and kept: they must not be made for empty tables.
  await withClient(url, (client) => client.query('analyze'));
  return { header, rows, migrated, ...rewound };
}

async function assertRoom(client: pg.Client, migration: string): Promise<void> {
  await assertEmpty(client, await readTables(client, backedUpTables()));
  const newest = (await appliedTo(client)).at(-1);
  if (newest === undefined || newest <= migration) return;
  const what = `This database is empty, but at migration ${newest}, newer than the backup's ${migration}`;
  throw new BackupError(`${what}. ${NOTHING} Give a new, empty database: it is brought to the backup's schema first, then to the newest.`);
}

async function assertEmpty(client: pg.Client, tables: readonly Table[]): Promise<void> {
  for (const { name } of tables) {
    const { rowCount } = await client.query(`select 1 from ${quoted(name)} limit 1`);
    if (rowCount === 0) continue;
    const cure = 'Give a new, empty database or data directory, and start no server on it before the restore';
    throw new BackupError(`This database is not empty: table ${name} has rows. Nothing was changed. ${cure}.`);
  }
}

async function loadAll(client: pg.Client, file: string, header: BackupHeader): Promise<Rewound> {
  const tables = await readTables(client, backedUpTables());
  assertSame(file, header, tables);
  await client.query('begin');
  try {
    await client.query(`set local lock_timeout to ${LOCK_TIMEOUT_MS}`);
    await client.query(`lock table ${tables.map(({ name }) => quoted(name)).join(', ')} in access exclusive mode`);
    await assertEmpty(client, tables);
    const keys = await readForeignKeys(client, tables);
    for (const { table, name } of keys) await client.query(`alter table ${quoted(table)} drop constraint ${quoted(name)}`);
    await loadRows(client, file, tables);
    // The ledger's own checks of turns, runs and slots: now, so that no event is pending when the keys come back.
    await client.query('set constraints all immediate');
    for (const { table, name, definition } of keys) {
      await client.query(`alter table ${quoted(table)} add constraint ${quoted(name)} ${definition}`);
    }
    const rewound = await rewind(client);
    await client.query('commit');
    return rewound;
  } catch (error) {
    await client.query('rollback').catch(() => {}); // the connection may be gone; then PostgreSQL has rolled back
    throw error;
  }
}

function assertSame(file: string, header: BackupHeader, tables: readonly Table[]): void {
  const columns = (of: readonly { name: string; columns: readonly string[] }[]) =>
    JSON.stringify(of.map(({ name, columns }) => `${name}(${[...columns].sort()})`).sort());
  const own = tables.map((table) => ({ name: table.name, columns: table.columns.map(({ name }) => name) }));
  if (columns(own) === columns(header.tables)) return;
  throw new BackupError(`${file} has other tables or columns than the schema ${header.migration}. ${NOTHING}`);
}

async function loadRows(client: pg.Client, file: string, tables: readonly Table[]): Promise<void> {
  let load: TableLoad | null = null;
  let header: BackupHeader | undefined;
  for await (const record of readBackup(file)) {
    if (record.kind === 'header') header = record.header;
    if (record.kind === 'end') await setNumbers(client, tables, record.numbers);
    if (record.kind !== 'row') continue;
    if (load?.name !== record.table) {
      await load?.flush();
      load = tableLoad(client, record.table, { header, tables });
    }
    await load.add(record.row);
  }
  await load?.flush();
}

function tableLoad(
  client: pg.Client,
  name: string,
  { header, tables }: { readonly header: BackupHeader | undefined; readonly tables: readonly Table[] },
): TableLoad {
  const types = new Map(tables.find((table) => table.name === name)?.columns.map((column) => [column.name, column.type]));
  const names = header?.tables.find((table) => table.name === name)?.columns ?? [];
  return new TableLoad(client, {
    name,
    columns: names.map((column) => ({ name: column, type: types.get(column) ?? 'text' })),
  });
}

/** Inserts the rows of one table in batches. */
class TableLoad {
  readonly name: string;
  readonly #client: pg.Client;
  readonly #statement: string;
  readonly #values: (string | null)[][];
  #rows = 0;
  #chars = 0;

  constructor(client: pg.Client, { name, columns }: { readonly name: string; readonly columns: readonly Column[] }) {
    this.name = name;
    this.#client = client;
    this.#values = columns.map(() => []);
    const into = columns.map((column) => quoted(column.name)).join(', ');
    const values = columns.map(({ type }, at) => `r.c${at}::${type}`).join(', ');
    const given = columns.map((_, at) => `$${at + 1}::text[]`).join(', ');
    const named = columns.map((_, at) => `c${at}`).join(', ');
    this.#statement = `insert into ${quoted(name)} (${into}) overriding system value select ${values} from unnest(${given}) as r(${named})`;
  }

  async add(row: Row): Promise<void> {
    row.forEach((value, at) => {
      this.#values[at]?.push(value);
      this.#chars += value?.length ?? 0;
    });
    this.#rows += 1;
    if (this.#rows >= BATCH_ROWS_MAX || this.#chars >= BATCH_CHARS_MAX) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.#rows === 0) return;
    await this.#client.query(this.#statement, this.#values);
    for (const values of this.#values) values.length = 0;
    [this.#rows, this.#chars] = [0, 0];
  }
}

async function setNumbers(client: pg.Client, tables: readonly Table[], numbers: BackupEnd['numbers']): Promise<void> {
  for (const { table, column, sequence } of await identities(client, tables)) {
    const last = numbers[`${table}.${column}`] ?? null;
    if (last !== null) await client.query('select setval($1::regclass, $2::bigint)', [sequence, last]);
  }
}
