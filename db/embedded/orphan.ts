/**
 * Owns: a PostgreSQL that a killed Heph server left running on our cluster. It is stopped, not adopted: its settings may be of another
 * Heph version, and only a child of ours tells us when it dies. The caller holds the server lock, so no live server owns that process.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../src/kernel/log.ts';
import { PostgresStartFailed } from './errors.ts';
import { isPostmasterOf, isRunning, startOf } from './processes.ts';

const FAST_STOP_MS = 30_000;
const IMMEDIATE_STOP_MS = 10_000;
const POLL_MS = 10;
/** Above the largest pid of every system, so never a process. */
const NOBODYS_PID = 2_147_483_646;

export const pidFileOf = (clusterDir: string) => join(clusterDir, 'postmaster.pid');

async function endsWithin(pid: number, started: string, limitMs: number): Promise<boolean> {
  const until = performance.now() + limitMs;
  while (isRunning(pid, started)) {
    if (performance.now() > until) return false;
    await sleep(POLL_MS);
  }
  return true;
}

async function stop(pid: number, started: string): Promise<void> {
  // SIGINT is PostgreSQL's fast shutdown (a checkpoint, nothing to recover), SIGQUIT its immediate one (the next start recovers).
  for (const [signal, limitMs] of [['SIGINT', FAST_STOP_MS] as const, ['SIGQUIT', IMMEDIATE_STOP_MS] as const]) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    if (await endsWithin(pid, started, limitMs)) return;
  }
  throw new PostgresStartFailed(
    `A PostgreSQL of an earlier Heph server (process ${pid}) still runs and does not stop. Stop it with kill -9 ${pid}, then start Heph again.`,
  );
}

/**
 * Makes sure that no PostgreSQL runs on the cluster, and that a pid file left by one that was killed does not keep ours from starting.
 * @throws PostgresStartFailed if one runs and does not stop.
 */
export async function stopOrphan(clusterDir: string, log: Log): Promise<void> {
  const pidFile = pidFileOf(clusterDir);
  if (!existsSync(pidFile)) return;
  const content = readFileSync(pidFile, 'utf8');
  const pid = Number.parseInt(content, 10);
  const started = startOf(pid);
  if (started === undefined) return;
  if (isPostmasterOf(pid, clusterDir)) {
    log.warn('embedded_postgres_orphan_found', { pid });
    await stop(pid, started);
    log.info('embedded_postgres_orphan_stopped', { pid });
    return;
  }
  // The pid went to another program, and PostgreSQL would take that one for a postmaster. Only the pid is replaced: the rest of the file
  // lets PostgreSQL find and refuse a shared memory segment that is still in use.
  writeFileSync(pidFile, content.replace(/^-?\d+/, String(NOBODYS_PID)));
}
