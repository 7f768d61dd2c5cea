/**
 * The only door of the embedded PostgreSQL: starts the one under HEPH_DATA_DIR and returns a handle. The steps, in order, each in its file:
 * data directory -> server lock -> whom it runs as -> programs -> what a killed server left -> cluster and password -> process -> database.
 * The lock is held until PostgreSQL has ended, by stop() or on its own.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../src/kernel/log.ts';
import { locatePackage, prepareBinaries } from './binaries.ts';
import { assertReachable, DATABASE, keepAside, openDataDir, prepareCluster, putBack, SUPERUSER } from './data-dir.ts';
import { createDatabase, dropDatabase, ensureDatabase } from './databases.ts';
import { DataDirInUse, onDisk, PostgresStartFailed } from './errors.ts';
import { acquireLock, type ServerLock } from './lock.ts';
import { stopOrphan } from './orphan.ts';
import { socketDirOf, throughSocket } from './socket.ts';
import { type Launch, launchPostgres, type Running } from './supervise.ts';
import { lentUser } from './user.ts';

export { DataDirInUse, DataDirUnusable, EmbeddedPostgresError, PostgresStartFailed, PostgresUnavailable } from './errors.ts';
export { findEmbedded } from './find.ts';
export { createDatabase, dropDatabase };

export interface EmbeddedOptions {
  /** HEPH_DATA_DIR, absolute. The cluster lives in `<dataDir>/postgres`. */
  readonly dataDir: string;
  readonly log: Log;
  /** Default: a free loopback port. */
  readonly port?: number;
  /** Server settings that are added to ours or replace them, `name: value`. */
  readonly extraSettings?: Readonly<Record<string, string>>;
  /** A cluster of another major version is moved aside and an empty one made in its place; else it is refused. */
  readonly keepOtherVersion?: boolean;
}

export interface EmbeddedPostgres {
  /** `postgres://…` of database heph, with its password, through its socket where there is one. Never log it. */
  readonly url: string;
  /** The same by its port. */
  readonly tcpUrl: string;
  readonly port: number;
  readonly pid: number;
  /** Where a cluster of another version was moved. */
  readonly kept: string | undefined;
  /** Resolves with how PostgreSQL ended, whoever ended it; never rejects. */
  readonly exited: Promise<string>;
  /** Fast shutdown: open transactions are rolled back, everything committed is on disk. May be called again, also after it died. */
  stop(): Promise<void>;
}

const RETRIES_MAX = 20;
const RETRY_PAUSE_MS = 250;
/** Somebody took the free port before PostgreSQL did. */
const PORT_TAKEN = /could not bind/;
/** Some file systems (of a container's host, say) hold no sockets. */
const NO_SOCKETS = /could not create any Unix-domain sockets/;
/** The processes of a PostgreSQL that was killed outright need a moment to notice. */
const MEMORY_IN_USE = /pre-existing shared memory block/;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

type Attempt = Omit<Launch, 'port'> & { readonly port: number | undefined };

interface Launched {
  readonly running: Running;
  readonly port: number;
  readonly socketDir: string | null;
}

async function launchWithRetries(attempt: Attempt): Promise<Launched> {
  let { socketDir } = attempt;
  for (let retry = 0; ; retry++) {
    const port = attempt.port ?? (await freePort());
    try {
      return { running: await launchPostgres({ ...attempt, port, socketDir }), port, socketDir };
    } catch (error) {
      const said = error instanceof PostgresStartFailed ? error.message : '';
      const withoutSocket = socketDir !== null && NO_SOCKETS.test(said);
      const passes = MEMORY_IN_USE.test(said) || (attempt.port === undefined && PORT_TAKEN.test(said));
      if (withoutSocket) socketDir = null;
      else if (!passes || retry >= RETRIES_MAX) throw error;
      if (!withoutSocket) await sleep(RETRY_PAUSE_MS);
    }
  }
}

/**
 * Starts the embedded PostgreSQL; at the first start it makes the cluster and database heph.
 * @throws EmbeddedPostgresError (DataDirInUse, DataDirUnusable, PostgresUnavailable, PostgresStartFailed): its message is for the person who
 * starts Heph.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const wishes = { port: options.port, extraSettings: options.extraSettings ?? {} };
  const startedMs = performance.now();
  const layout = await onDisk(options.dataDir, () => openDataDir(options.dataDir));
  const lock = await onDisk(layout.dataDir, () => acquireLock(layout.dataDir));
  try {
    const { attempt, password, created, kept } = await onDisk(layout.dataDir, async () => {
      const user = lentUser(layout.dataDir, layout.clusterDir);
      assertReachable(layout, user);
      const binaries = await prepareBinaries(locatePackage(), user);
      await stopOrphan(layout.clusterDir, log);
      const kept = options.keepOtherVersion ? keepAside(layout, binaries.majorVersion) : undefined;
      const cluster = await prepareCluster(layout, { binaries, user });
      return { ...cluster, kept, attempt: { layout, binaries, user, log, socketDir: socketDirOf(layout.clusterDir), ...wishes } };
    });
    const { running, port, socketDir } = await onDisk(layout.dataDir, () => launchWithRetries(attempt));
    const exited = running.exited.finally(() => lock.release());
    try {
      // PGSSLMODE of the user's shell must not decide over a loopback connection.
      const adminUrl = `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres?sslmode=disable`;
      const tcpUrl = await ensureDatabase(adminUrl, DATABASE);
      const url = socketDir === null ? tcpUrl : throughSocket(tcpUrl, socketDir);
      const handle = { url, tcpUrl, port, pid: running.pid, kept, exited, stop: stopAfter(running, exited) };
      const durationMs = Math.round(performance.now() - startedMs);
      log.info('embedded_postgres_started', { pid: handle.pid, port, socket: socketDir !== null, created, durationMs });
      return handle;
    } catch (error) {
      await running.stop();
      throw error;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** A stop after which the lock is free too, so that a caller may start again at once. */
function stopAfter(running: Running, exited: Promise<string>): () => Promise<void> {
  return async () => {
    await running.stop();
    await exited;
  };
}

/** Removes the cluster that took the place of `kept`, and puts that one back. PostgreSQL must have been stopped. */
export async function putBackCluster(dataDir: string, kept: string): Promise<void> {
  await onDisk(dataDir, () => {
    const layout = openDataDir(dataDir);
    const lock = acquireLock(layout.dataDir);
    try {
      putBack(layout, kept);
    } finally {
      lock.release();
    }
  });
}

/**
 * Takes a data directory without a PostgreSQL in it, for a server that uses another database. `in-use`: another live server has it.
 * @throws DataDirUnusable if the directory cannot be made or written.
 */
export async function lockDataDir(dataDir: string): Promise<ServerLock | 'in-use'> {
  return onDisk(dataDir, () => {
    const layout = openDataDir(dataDir);
    try {
      return acquireLock(layout.dataDir);
    } catch (error) {
      if (error instanceof DataDirInUse) return 'in-use';
      throw error;
    }
  });
}
