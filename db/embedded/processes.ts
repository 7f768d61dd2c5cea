/**
 * Owns: telling one process from another. A pid alone says nothing: it is given again after its process ended, so a process is named by
 * its pid and its start time (with the boot it belongs to: ticks since boot repeat after a reboot).
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, type Stats, statSync } from 'node:fs';
import { basename } from 'node:path';

/** Children get this and nothing else: no LANG that PostgreSQL could trip over, no PG* variable, no provider key of ours. */
export const CHILD_ENV: Readonly<Record<string, string>> = { LC_ALL: 'C', TZ: 'UTC' };

/** The process runs, but the system does not say since when (a hidden /proc). */
export const START_UNKNOWN = 'unknown';

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

function ps(pid: number, columns: readonly string[]): string | undefined {
  try {
    const args = [...columns.flatMap((column) => ['-o', `${column}=`]), '-p', String(pid)];
    return execFileSync('/bin/ps', args, { env: CHILD_ENV, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

/** Linux: state and start of a process. The name before them is in parentheses and may hold spaces and parentheses itself. */
function procStat(pid: number): { state: string; started: string } | undefined {
  const stat = textOf(`/proc/${pid}/stat`);
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, ticks] = [fields?.[0], fields?.[19]];
  if (state === undefined || ticks === undefined) return undefined;
  return { state, started: `${textOf('/proc/sys/kernel/random/boot_id')?.trim() ?? ''}:${ticks}` };
}

function psStat(pid: number): { state: string; started: string } | undefined {
  const [, state, started] = /^(\S+)\s+(.+)$/.exec(ps(pid, ['stat', 'lstart']) ?? '') ?? [];
  return state === undefined || started === undefined ? undefined : { state, started };
}

/**
 * When process `pid` started, as a text to compare for equality; `START_UNKNOWN` if it runs but its start cannot be read; undefined if there is
 * no such process. One that ended and only waits to be collected (a zombie) counts as ended.
 */
export function startOf(pid: number, platform: NodeJS.Platform = process.platform): string | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0 || !exists(pid)) return undefined;
  const stat = platform === 'linux' ? procStat(pid) : psStat(pid);
  if (stat === undefined) return exists(pid) ? START_UNKNOWN : undefined;
  return /^[ZX]/.test(stat.state) ? undefined : stat.started;
}

/** True if the process with this pid and start still runs. When in doubt, true. */
export function isRunning(pid: number, started: string): boolean {
  const current = startOf(pid);
  if (current === undefined) return false;
  return current === started || current === START_UNKNOWN || started === START_UNKNOWN;
}

/** True if `pid` is a PostgreSQL server of this cluster directory, whatever path it was started with. */
export function isPostmasterOf(pid: number, clusterDir: string): boolean {
  if (process.platform !== 'linux') {
    const command = ps(pid, ['command']) ?? '';
    return command.includes('postgres') && command.includes(clusterDir);
  }
  const program = textOf(`/proc/${pid}/cmdline`)?.split('\0')[0] ?? '';
  const [at, cluster] = [statOf(`/proc/${pid}/cwd`), statOf(clusterDir)];
  return basename(program) === 'postgres' && at !== undefined && at.dev === cluster?.dev && at.ino === cluster.ino;
}
