/**
 * Owns: the database of a server: external or embedded, migrated, with a pool, and who we are in it (the host and its lock).
 */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type EmbeddedPostgres, lockDataDir, startEmbeddedPostgres } from '../db/embedded/index.ts';
import { HostLock } from '../db/host-lock.ts';
import { endHost, registerHost } from '../db/ledger/sandboxes.ts';
import { migrate } from '../db/migrate.ts';
import { type Database, openDatabase } from '../db/pool.ts';
import type { Config } from './config.ts';
import { RuntimeFault } from './kernel/faults.ts';
import { type HostId, uuidv7 } from './kernel/ids.ts';
import type { Log } from './kernel/log.ts';

/** A start that failed for a reason that the person at the keyboard can change. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

export interface OpenedDatabase {
  readonly db: Database;
  readonly url: string;
  /** null with an external database. */
  readonly embedded: EmbeddedPostgres | null;
  readonly host: { readonly id: HostId; readonly predecessorOf: string | null };
  readonly hostLock: HostLock;
  close(): Promise<void>;
}

const WAITERS_MAX = 2_000;
const ACQUIRE_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 30_000;

export async function openServerDatabase(config: Config, log: Log): Promise<OpenedDatabase> {
  const place = await (config.databaseUrl ? externalPlace(config, log) : embeddedPlace(config, log));
  try {
    const applied = await migrate(place.url);
    if (applied.length > 0) log.info('migrations applied', { count: applied.length });
    const db = await openDatabase({
      url: place.url,
      poolMax: config.databasePoolMax,
      waitersMax: WAITERS_MAX,
      acquireTimeoutMs: ACQUIRE_TIMEOUT_MS,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      applicationName: 'heph-server',
    });
    return await asHost(config, log, { ...place, db });
  } catch (error) {
    await place.release();
    throw explain(error, config);
  }
}

interface Place {
  readonly url: string;
  readonly embedded: EmbeddedPostgres | null;
  /** Present when no other live server uses the data directory: then older boots of its name are dead. */
  readonly ownName: string | null;
  release(): Promise<void>;
}

async function embeddedPlace(config: Config, log: Log): Promise<Place> {
  const embedded = await startEmbeddedPostgres({ dataDir: config.dataDir, log });
  return { url: embedded.url, embedded, ownName: hostName(config.dataDir), release: () => embedded.stop() };
}

async function externalPlace(config: Config, log: Log): Promise<Place> {
  const url = config.databaseUrl as string;
  const lock = await lockDataDir(config.dataDir);
  if (lock === 'in-use') {
    log.info('data directory shared with another live server', { note: 'a restart of this server is noticed by its session lock' });
    return { url, embedded: null, ownName: null, release: async () => {} };
  }
  return { url, embedded: null, ownName: hostName(config.dataDir), release: async () => lock.release() };
}

/** The name of this data directory among hosts, the same at each boot. */
function hostName(dataDir: string): string {
  const file = path.join(dataDir, 'host-name');
  if (!existsSync(file)) writeFileSync(file, `${randomUUID()}\n`, { mode: 0o600 });
  return readFileSync(file, 'utf8').trim();
}

async function asHost(config: Config, log: Log, opened: Place & { db: Database }): Promise<OpenedDatabase> {
  const { db, url, embedded, ownName, release } = opened;
  const id = uuidv7<'host'>();
  const lockKey = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
  const hostLock = await HostLock.take(url, lockKey, log);
  await registerHost(db, { id, name: ownName ?? `shared-${id}`, lockKey, sandboxesMax: config.sandboxesMax });
  return {
    ...{ db, url, embedded, hostLock },
    host: { id, predecessorOf: ownName },
    async close() {
      await endHost(db, id).catch(() => {}); // the database may be gone already; then the lock says it
      await hostLock.close();
      await db.close();
      await release();
    },
  };
}

function explain(error: unknown, config: Config): unknown {
  if (!(error instanceof RuntimeFault) || error.code !== 'DATABASE_UNAVAILABLE' || !config.databaseUrl) return error;
  const { hostname, port, pathname } = new URL(config.databaseUrl);
  const where = `${hostname}:${port || 5432}${pathname}`;
  return new StartError(
    `The database of HEPH_DATABASE_URL (${where}) does not answer. Start it, correct the address, or unset HEPH_DATABASE_URL to use the embedded one.`,
  );
}
