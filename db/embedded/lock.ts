/**
 * Owns: one live Heph server per data directory.
 *
 * The lock is a chain of numbered symbolic links, `server.<n>.lock`, whose target text names the holder (nothing is at the end of the link).
 * Making a symbolic link is one atomic, exclusive step that also carries the text: no reader ever meets a half-written lock.
 *   L1 The highest number decides. Its holder runs: the directory is taken. Its holder ended, or wrote `free`: it may be succeeded.
 *   L2 Number n+1 may be made only by a starter that saw n as the highest and its holder ended. Only one starter can make it.
 *   L3 After making it, a starter looks again and owns the lock only if its number is still the highest: one that was delayed may
 *      have made a low number that others had already used and removed.
 * A lock file that starters remove and make anew cannot do this: the second one to see the stale file would remove the first one's new file.
 */
import { readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DataDirInUse, DataDirUnusable } from './errors.ts';
import { isRunning, START_UNKNOWN, startOf } from './processes.ts';

export interface ServerLock {
  /** Lets the next server in. Harmless when called again. */
  release(): void;
}

const NAME = /^server\.(\d{1,15})\.lock$/;
/** Each lost attempt means that another starter got further, so this is never reached in practice. */
const ATTEMPTS_MAX = 100;
const FREE = 'free';

const fileOf = (dataDir: string, n: number) => join(dataDir, `server.${n}.lock`);

function numbers(dataDir: string): number[] {
  const found = readdirSync(dataDir).map((name) => NAME.exec(name)?.[1]);
  return found.filter((digits) => digits !== undefined).map(Number);
}

function highest(dataDir: string): number {
  return Math.max(0, ...numbers(dataDir));
}

/** The text of a lock: the process and its start. Exported for specs that leave a stale lock behind. */
export function lockText(pid: number, started: string): string {
  return `pid ${pid} started ${started}`;
}

/** The pid of the running holder of lock `n`; undefined if it is free, stale or has just been succeeded. */
function runningHolder(dataDir: string, n: number): number | undefined {
  let text: string;
  try {
    text = readlinkSync(fileOf(dataDir, n));
  } catch (error) {
    if (['ENOENT', 'EINVAL'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  const [, pid, started] = /^pid (\d+) started (.+)$/.exec(text) ?? [];
  if (pid === undefined || started === undefined) return undefined;
  return isRunning(Number(pid), started) ? Number(pid) : undefined;
}

/** Makes lock `n` and tells whether it is the one that counts (L2, L3). Exported for the spec of L3. */
export function makeLock(dataDir: string, n: number, text: string): boolean {
  try {
    symlinkSync(text, fileOf(dataDir, n));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  const all = numbers(dataDir);
  const won = Math.max(...all) === n;
  for (const other of won ? all.filter((m) => m < n) : [n]) rmSync(fileOf(dataDir, other), { force: true });
  return won;
}

/**
 * Takes the lock of a directory that exists and can be written.
 * @throws DataDirInUse if another live server (or this very process) holds it.
 */
export function acquireLock(dataDir: string): ServerLock {
  const text = lockText(process.pid, startOf(process.pid) ?? START_UNKNOWN);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const n = highest(dataDir);
    const holder = n === 0 ? undefined : runningHolder(dataDir, n);
    if (holder !== undefined) throw new DataDirInUse(dataDir, holder);
    if (makeLock(dataDir, n + 1, text)) return { release: releaseOnce(dataDir, n + 1) };
  }
  throw new DataDirUnusable(dataDir, { why: 'Too many servers start there at once.', whatToDo: 'Start one of them only.' });
}

/** Releasing appends a link too: removing the last one would let a delayed starter's low number become the highest. */
function releaseOnce(dataDir: string, n: number): () => void {
  let held = true;
  return () => {
    if (!held) return;
    held = false;
    try {
      makeLock(dataDir, n + 1, FREE);
    } catch {
      // The directory is gone or full. The lock then ends with this process.
    }
  };
}
