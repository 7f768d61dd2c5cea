/**
 * Owns: what a backup is about: the tables of the migrations, their stored columns, the numbers of their identities, their foreign keys.
 * Tables that somebody else has put beside ours are left alone.
 * Does not own: rows (dump.ts, load.ts).
 */
import pg from 'pg';
import { databaseFault } from '../faults.ts';
import { migrationTexts } from '../migrate.ts';
import { BackupError } from './errors.ts';

/**
 * Sign-ins of a moment: restored, they would let in who has signed out since. And who we are among the installations that share a cluster:
 * what is restored is another installation, lest it and the old one end each other's pods.
 */
const NOT_BACKED_UP: ReadonlySet<string> = new Set(['web_session', 'sign_in_attempt', 'installation']);

/** Not `create unlogged table`: what PostgreSQL itself drops after a crash is in no backup. */
const CREATES = /^create table (\w+)/gm;

const CONNECT_TIMEOUT_MS = 10_000;

export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
}

export interface Column {
  readonly name: string;
  /** As SQL writes it, for example `uuid[]`. */
  readonly type: string;
}

/** Names of the tables whose rows a backup holds, in the order of the migrations. */
export function backedUpTables(): readonly string[] {
  const made = migrationTexts().flatMap((text) => [...text.matchAll(CREATES)].map(([, name = '']) => name));
  return made.filter((name) => !NOT_BACKED_UP.has(name));
}

/**
 * Runs `work` on a connection of its own, on which values have one written form.
 * @throws RuntimeFault DATABASE_UNAVAILABLE when nothing answers.
 */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS, application_name: 'heph-backup' });
  client.on('error', () => {}); // a lost connection rejects the query that runs
  try {
    await client.connect();
    for (const setting of WRITTEN_FORM) await client.query(`set ${setting}`);
    return await work(client);
  } catch (error) {
    throw error instanceof BackupError ? error : databaseFault(error);
  } finally {
    await client.end().catch(() => {});
  }
}

const WRITTEN_FORM = [
  `timezone to 'UTC'`,
  `datestyle to 'ISO'`,
  `intervalstyle to 'postgres'`,
  `bytea_output to 'hex'`,
  'extra_float_digits to 1',
  `client_encoding to 'UTF8'`,
  'statement_timeout to 0',
  'idle_in_transaction_session_timeout to 0',
  `search_path to public`,
];

/** The tables of `names` that this database has, with the columns that are stored and not computed. */
export async function readTables(client: pg.Client, names: readonly string[]): Promise<readonly Table[]> {
  const { rows } = await client.query<{ name: string; columns: Column[] }>(
    `select c.relname as name,
       json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) order by a.attnum) as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname = any($1)
       and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
     group by c.relname order by array_position($1, c.relname::text)`,
    [names],
  );
  return rows;
}

/** The next numbers of identity columns, `table.column` -> the last one that was given out; null: none was. */
export async function readNumbers(client: pg.Client, tables: readonly Table[]): Promise<Record<string, string | null>> {
  const numbers: Record<string, string | null> = {};
  for (const { table, column, sequence } of await identities(client, tables)) {
    const { rows } = await client.query<{ last: string; called: boolean }>(
      `select last_value::text as last, is_called as called from ${sequence}`,
    );
    const [found] = rows;
    numbers[`${table}.${column}`] = found?.called ? found.last : null;
  }
  return numbers;
}

/** The identity columns, and their sequences as SQL writes them. */
export async function identities(client: pg.Client, tables: readonly Table[]) {
  const { rows } = await client.query<{ table: string; column: string; sequence: string }>(
    `select c.relname as table, a.attname as column, pg_get_serial_sequence(c.oid::regclass::text, a.attname) as sequence
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relname = any($1) and a.attidentity <> '' order by 1, 2`,
    [tables.map(({ name }) => name)],
  );
  return rows;
}

export interface ForeignKey {
  readonly table: string;
  readonly name: string;
  /** What follows `add constraint NAME`. */
  readonly definition: string;
}

export async function readForeignKeys(client: pg.Client, tables: readonly Table[]): Promise<readonly ForeignKey[]> {
  const { rows } = await client.query<ForeignKey>(
    `select c.relname as table, k.conname as name, pg_get_constraintdef(k.oid) as definition
     from pg_constraint k join pg_class c on c.oid = k.conrelid
     where k.contype = 'f' and c.relnamespace = 'public'::regnamespace and c.relname = any($1) order by 1, 2`,
    [tables.map(({ name }) => name)],
  );
  return rows;
}

/** A name as SQL writes it. */
export const quoted = (name: string): string => pg.escapeIdentifier(name);
