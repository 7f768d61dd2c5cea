/**
 * Owns: the PostgreSQL of a bench: the embedded one as `npm start` runs it (its own settings, on disk, fsync on), or with
 * HEPH_TEST_DATABASE_URL (a superuser's) a database of its own on a running server.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createDatabase, dropDatabase, startEmbeddedPostgres } from '../../db/embedded/index.ts';
import { migrate } from '../../db/migrate.ts';
import { silentLog } from '../../src/kernel/log.ts';

export interface BenchPostgres {
  readonly url: string;
  readonly embedded: boolean;
  /** CPU time of all its processes since it began, milliseconds; null where it cannot be seen (another machine, no /proc). */
  cpuMs(): number | null;
  stop(): Promise<void>;
}

/** Starts it and makes an empty, migrated database. */
export async function startPostgres(): Promise<BenchPostgres> {
  const given = process.env['HEPH_TEST_DATABASE_URL'];
  if (given) {
    const name = `heph_bench_${randomUUID().slice(0, 8)}`;
    const url = await createDatabase(given, name);
    await migrate(url);
    return { url, embedded: false, cpuMs: () => null, stop: () => dropDatabase(given, name) };
  }
  // A directory of its own: as root, PostgreSQL runs as another user, who may not enter ours.
  const dataDir = mkdtempSync(path.join(tmpdir(), 'heph-bench-postgres-'));
  const server = await startEmbeddedPostgres({ dataDir, log: silentLog });
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    await migrate(server.url);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: server.url, embedded: true, cpuMs: () => treeCpuMs(server.pid), stop };
}

/** Clock ticks of /proc are 10 ms on every Linux that Node runs on. */
const TICK_MS = 10;
/** Fields of /proc/<pid>/stat after the command's closing parenthesis. */
const STAT = { ppid: 1, utime: 11, stime: 12, cutime: 13, cstime: 14 } as const;

/** A server, the children that it has, and those that it had. */
function treeCpuMs(pid: number): number | null {
  const own = readStat(String(pid));
  if (own === null) return null;
  const children = readdirSync('/proc').flatMap((name) => {
    const stat = /^\d+$/.test(name) ? readStat(name) : null;
    return stat !== null && stat[STAT.ppid] === String(pid) ? [stat] : [];
  });
  const ticks = (stat: readonly string[], fields: readonly number[]) => fields.reduce((sum, field) => sum + Number(stat[field] ?? 0), 0);
  const running = [own, ...children].reduce((sum, stat) => sum + ticks(stat, [STAT.utime, STAT.stime]), 0);
  return (running + ticks(own, [STAT.cutime, STAT.cstime])) * TICK_MS;
}

function readStat(pid: string): readonly string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null; // no such process (any more), or no /proc
  }
}
