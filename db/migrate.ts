/**
 * Owns: bringing a database to the newest schema. Servers that start together wait for each other on the tool's advisory lock.
 */
import { readdirSync } from 'node:fs';
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

/** Applies what is missing; returns the names of what it applied. Rejects with DATABASE_UNAVAILABLE when nothing answers. */
export async function migrate(url: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, application_name: 'heph-migrate' });
  client.on('error', () => {}); // a lost connection rejects the query that runs
  try {
    await client.connect();
    const applied = await runner({
      dbClient: client,
      dir: migrationsDir,
      direction: 'up',
      migrationsTable,
      advisoryLockMode: 'wait',
      checkOrder: true,
      logger: quiet,
    });
    return applied.map(({ name }) => name);
  } catch (error) {
    throw databaseFault(error);
  } finally {
    await client.end().catch(() => {});
  }
}
