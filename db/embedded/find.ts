/**
 * Owns: finding the embedded PostgreSQL of a data directory from another process than the server that runs it, and changing nothing there.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DATABASE, readPassword, SUPERUSER } from './data-dir.ts';
import { pidFileOf } from './orphan.ts';
import { isPostmasterOf } from './processes.ts';

export type Found = { readonly state: 'none' | 'stopped' } | { readonly state: 'running'; readonly url: string };

/** What lies in `dataDir`, and the url of what runs there. Never log the url. */
export function findEmbedded(dataDir: string): Found {
  const clusterDir = join(dataDir, 'postgres');
  if (!existsSync(join(clusterDir, 'PG_VERSION'))) return { state: 'none' };
  const pidFile = pidFileOf(clusterDir);
  const [pid, , , port, , , , status] = existsSync(pidFile) ? readFileSync(pidFile, 'utf8').split('\n') : [];
  const password = readPassword({ passwordFile: join(dataDir, 'postgres.password') });
  const serves = status?.trim() === 'ready' && isPostmasterOf(Number(pid), clusterDir);
  if (!serves || password === undefined) return { state: 'stopped' };
  return { state: 'running', url: `postgres://${SUPERUSER}:${password}@127.0.0.1:${Number(port)}/${DATABASE}?sslmode=disable` };
}
