/**
 * Owns: which migrations the database has, for readiness.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

/** Names of the applied migrations. */
export async function appliedMigrations(db: Executor): Promise<readonly string[]> {
  const rows = await db.any(sql.prepared('web_applied_migrations', z.object({ name: z.string() }))`select name from heph_migration`);
  return rows.map(({ name }) => name);
}
