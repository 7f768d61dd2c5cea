/**
 * Owns: bringing a database to the newest schema. Servers that start together wait for each other on the tool's advisory lock.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { databaseFault } from './faults.ts';

const migrationsDir = fileURLToPath(new URL('./migrations', import.meta.url));
const migrationsTable = 'heph_migration';
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Names of all migrations in order, without `.sql`. */
export function migrationNames(): readonly string[] {
  return readdirSync(migrationsDir)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

/** The text of each migration, in order. */
export function migrationTexts(): readonly string[] {
  return migrationNames().map((name) => readFileSync(`${migrationsDir}/${name}.sql`, 'utf8'));
}

/** Names of the migrations that this database has, in order; none when it is empty. */
export async function appliedTo(client: pg.Client): Promise<readonly string[]> {
  const found = await client.query('select 1 from pg_class where oid = to_regclass($1)', [migrationsTable]);
  if (found.rowCount === 0) return [];
  const { rows } = await client.query<{ name: string }>(`select name from ${migrationsTable} order by name`);
  return rows.map(({ name }) => name);
}

/**
 * Applies what is missing, up to the migration `last` or all; returns the names of what it applied. Rejects with DATABASE_UNAVAILABLE when
 * nothing answers.
 */
export async function migrate(url: string, last?: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, application_name: 'heph-migrate' });
  client.on('error', () => {}); // a lost connection rejects the query that runs
  try {
    await client.connect();
    const missing = last === undefined ? null : migrationNames().indexOf(last) + 1 - (await appliedTo(client)).length;
    if (missing !== null && missing <= 0) return [];
    const applied = await runner({
      dbClient: client,
      dir: migrationsDir,
      direction: 'up',
      migrationsTable,
      advisoryLockMode: 'wait',
      checkOrder: true,
      ...(missing === null ? {} : { count: missing }),
      logger: quiet,
    });
    return applied.map(({ name }) => name);
  } catch (error) {
    throw databaseFault(error);
  } finally {
    await client.end().catch(() => {});
  }
}
