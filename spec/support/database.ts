/**
 * A real PostgreSQL for specs. One server per mocha process, started on first use; each spec file gets its own database, cloned from a
 * migrated template. HEPH_TEST_DATABASE_URL (a superuser's) selects a running server, else Docker when it answers, else the embedded one.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createDatabase, dropDatabase, startEmbeddedPostgres } from '../../db/embedded/index.ts';
import { migrate } from '../../db/migrate.ts';
import { type Database, openDatabase } from '../../db/pool.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { bindModel } from './models.ts';

interface TestServer {
  readonly adminUrl: string;
  stop(): Promise<void>;
}

async function embeddedServer(): Promise<TestServer> {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'heph-spec-'));
  const settings = { max_connections: '200', shared_buffers: '64MB', wal_level: 'logical', max_wal_size: '512MB' };
  const server = await startEmbeddedPostgres({ dataDir, log: silentLog, extraSettings: settings });
  return {
    adminUrl: server.tcpUrl, // specs put wires between it and its clients
    stop: async () => {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function dockerServer(): Promise<TestServer | null> {
  try {
    const { GenericContainer, getContainerRuntimeClient, Wait } = await import('testcontainers');
    await getContainerRuntimeClient();
    const container = await new GenericContainer('postgres:18')
      .withEnvironment({ POSTGRES_PASSWORD: 'heph' })
      .withCommand(['postgres', '-c', 'wal_level=logical'])
      .withExposedPorts(5432)
      .withWaitStrategy(Wait.forListeningPorts())
      .start();
    const adminUrl = `postgres://postgres:heph@${container.getHost()}:${container.getMappedPort(5432)}/postgres`;
    return { adminUrl, stop: async () => void (await container.stop()) };
  } catch {
    return null; // no container runtime on this machine
  }
}

let shared: Promise<TestServer> | undefined;
let template: Promise<string> | undefined;

async function startServer(): Promise<TestServer> {
  const given = process.env['HEPH_TEST_DATABASE_URL'];
  if (given) return { adminUrl: given, stop: async () => {} };
  const mayHaveDocker = process.env['DOCKER_HOST'] !== undefined || existsSync('/var/run/docker.sock'); // loading the client takes a second
  return (mayHaveDocker ? await dockerServer() : null) ?? (await embeddedServer());
}

async function makeTemplate(adminUrl: string): Promise<string> {
  const name = `heph_template_${randomUUID().slice(0, 8)}`;
  await migrate(await createDatabase(adminUrl, name));
  return name;
}

/** Url of a fresh, migrated database and a function that drops it. */
export async function freshDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  shared ??= startServer();
  const { adminUrl } = await shared;
  template ??= makeTemplate(adminUrl);
  const name = `heph_${randomUUID().slice(0, 8)}`;
  const url = await createDatabase(adminUrl, name, await template);
  return { url, drop: () => dropDatabase(adminUrl, name) };
}

/** Url of a database without a schema and a function that drops it. */
export async function blankDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  shared ??= startServer();
  const { adminUrl } = await shared;
  const name = `heph_${randomUUID().slice(0, 8)}`;
  return { url: await createDatabase(adminUrl, name), drop: () => dropDatabase(adminUrl, name) };
}

/** Called once at the end of the mocha process (spec/support/global.ts). */
export async function stopSharedServer(): Promise<void> {
  const server = await shared;
  if (server && template && process.env['HEPH_TEST_DATABASE_URL']) await dropDatabase(server.adminUrl, await template);
  await server?.stop();
  shared = undefined;
}

/** Opens a pool the way a server does. */
export function openTestDatabase(url: string, poolMax = 8): Promise<Database> {
  return openDatabase({
    url,
    poolMax,
    waitersMax: 1_000,
    acquireTimeoutMs: 15_000,
    statementTimeoutMs: 15_000,
    applicationName: 'heph-spec',
  });
}

/** Registers mocha hooks: a database of its own, with a model that answers, for the surrounding `describe`. */
export function useDatabase(): { readonly db: Database; readonly url: string } {
  let db: Database | undefined;
  let fresh: Awaited<ReturnType<typeof freshDatabase>> | undefined;
  before(async function () {
    this.timeout(60_000);
    fresh = await freshDatabase();
    db = await openTestDatabase(fresh.url);
    await bindModel(db);
  });
  after(async () => {
    await db?.close();
    await fresh?.drop();
  });
  const needed = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the database is there only inside of hooks and tests');
    return value;
  };
  return {
    get db() {
      return needed(db);
    },
    get url() {
      return needed(fresh).url;
    },
  };
}
