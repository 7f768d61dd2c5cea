/**
 * Owns: the running PostgreSQL process: its command line, its log file, waiting until it serves, stopping it, noticing its death.
 * It runs in a process group of its own, so Ctrl-C reaches Heph only and Heph can drain before it stops the database. Where setpriv
 * exists (Linux), the kernel sends it a fast shutdown if Heph is killed. No signal handler is installed and nothing here ends the process.
 */
import { type ChildProcess, execFile, type StdioOptions, spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, renameSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Log } from '../../src/kernel/log.ts';
import type { Binaries } from './binaries.ts';
import type { Layout } from './data-dir.ts';
import { PostgresStartFailed } from './errors.ts';
import { pidFileOf } from './orphan.ts';
import { removeSockets } from './socket.ts';
import { childOptions, type LentUser } from './user.ts';

export interface Launch {
  readonly layout: Layout;
  readonly binaries: Binaries;
  readonly user: LentUser | undefined;
  readonly port: number;
  /** Where it makes its socket file; null: nowhere. */
  readonly socketDir: string | null;
  readonly extraSettings: Readonly<Record<string, string>>;
  readonly log: Log;
}

export interface Running {
  readonly pid: number;
  /** How it ended, for example `exit code 0` or `signal SIGKILL`. */
  readonly exited: Promise<string>;
  stop(): Promise<void>;
}

/** Above this the log is put aside as postgres.log.1 at the next start. */
export const logMaxBytes = 10 * 1024 * 1024;
/** PostgreSQL has failed when it neither serves nor writes to its log for this long: a long recovery reports progress every 10 s. */
const START_SILENCE_MAX_MS = 30_000;
const START_MAX_MS = 600_000;
const FAST_STOP_MS = 30_000;
const IMMEDIATE_STOP_MS = 10_000;
const POLL_MS = 5;
const TAIL_MAX_BYTES = 4_096;
const TAIL_MAX_LINES = 12;
const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'];

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_permissions: '0700',
  fsync: 'on',
  synchronous_commit: 'on',
  max_connections: '100',
  shared_buffers: '128MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // The log must hold no statement, no parameter and no value: an ERROR may quote one (`invalid input syntax: "…"`), so errors of
  // statements are left to the client that caused them, and LOG, FATAL and PANIC remain.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_statement: 'none',
  log_min_duration_statement: '-1',
  log_parameter_max_length: '0',
  log_parameter_max_length_on_error: '0',
  // A sign of life during a long recovery, see START_SILENCE_MAX_MS.
  log_startup_progress_interval: '10s',
  // Would write for ever into a log that is only bounded at the start.
  log_checkpoints: 'off',
};

/** The command prefix that has the kernel send SIGINT to PostgreSQL when we die; undefined where that is not possible. */
async function deathSignalPrefix(user: LentUser | undefined): Promise<readonly [string, ...string[]] | undefined> {
  const setpriv = process.platform === 'linux' ? SETPRIV.find((path) => existsSync(path)) : undefined;
  if (setpriv === undefined) return undefined;
  const lend = user === undefined ? [] : [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  const args = [...lend, '--pdeathsig=INT'];
  try {
    // A setpriv that is too old, or not that of util-linux, fails here.
    await promisify(execFile)(setpriv, [...args, setpriv, '--version'], { ...childOptions(undefined), timeout: 10_000 });
    return [setpriv, ...args];
  } catch {
    return undefined;
  }
}

function openLog(file: string): number {
  if (existsSync(file) && statSync(file).size > logMaxBytes) renameSync(file, `${file}.1`);
  return openSync(file, 'a+', 0o600);
}

/** The last lines that PostgreSQL wrote since `fromByte`. */
function tail(file: string, fromByte: number): string {
  const fd = openSync(file, 'r');
  try {
    const { size } = fstatSync(fd);
    const at = Math.max(fromByte, size - TAIL_MAX_BYTES);
    const bytes = Buffer.alloc(Math.max(0, size - at));
    readSync(fd, bytes, 0, bytes.length, at);
    return bytes.toString('utf8').trim().split('\n').slice(-TAIL_MAX_LINES).join('\n');
  } finally {
    closeSync(fd);
  }
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(`not started (${error.code})`));
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
}

/** True once the postmaster says in its pid file (as pg_ctl reads it) that it accepts connections. */
function isReady(clusterDir: string, pid: number): boolean {
  try {
    const lines = readFileSync(pidFileOf(clusterDir), 'utf8').split('\n');
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}

/** Waits until PostgreSQL serves. Resolves to why it does not, else undefined. */
async function waitReady(launch: Launch, pid: number, exited: Promise<string>): Promise<string | undefined> {
  const { clusterDir, logFile } = launch.layout;
  const started = performance.now();
  let [logBytes, heardAt] = [0, started];
  while (!isReady(clusterDir, pid)) {
    const ended = await Promise.race([exited, sleep(POLL_MS)]);
    if (ended !== undefined) return `it ended with ${ended}`;
    const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
    const now = performance.now();
    if (size !== logBytes) [logBytes, heardAt] = [size, now];
    if (now - heardAt > START_SILENCE_MAX_MS || now - started > START_MAX_MS) {
      return `it did not serve within ${Math.round((now - started) / 1_000)} s`;
    }
  }
  return undefined;
}

async function shutDown(child: ChildProcess, exited: Promise<string>): Promise<void> {
  for (const [signal, limitMs] of [['SIGINT', FAST_STOP_MS] as const, ['SIGQUIT', IMMEDIATE_STOP_MS] as const]) {
    child.kill(signal);
    // The child keeps the event loop alive, the timer need not.
    if ((await Promise.race([exited, sleep(limitMs, undefined, { ref: false })])) !== undefined) return;
  }
  child.kill('SIGKILL');
  await exited;
}

/** The process itself, detached from our process group, its output appended to the log. */
async function spawnPostgres({ layout, binaries, user, port, socketDir, extraSettings }: Launch, logFd: number): Promise<ChildProcess> {
  const sockets = socketDir === null ? '' : `"${socketDir}"`;
  const settings = { ...SETTINGS, port: String(port), unix_socket_directories: sockets, ...extraSettings };
  const args = ['-D', layout.clusterDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  const prefix = await deathSignalPrefix(user);
  const stdio: StdioOptions = ['ignore', logFd, logFd];
  if (prefix === undefined) return spawn(binaries.postgres, args, { ...childOptions(user), detached: true, stdio });
  const [setpriv, ...prefixArgs] = prefix;
  // setpriv lends the user itself: the kernel forgets the wish for a signal when the user changes.
  return spawn(setpriv, [...prefixArgs, binaries.postgres, ...args], { ...childOptions(undefined), detached: true, stdio });
}

/**
 * Starts PostgreSQL on a cluster that nobody else uses and waits until it serves.
 * @throws PostgresStartFailed with the last lines of its log.
 */
export async function launchPostgres(launch: Launch): Promise<Running> {
  const { logFile, clusterDir } = launch.layout;
  removeSockets(clusterDir);
  const logFd = openLog(logFile);
  const logStart = fstatSync(logFd).size;
  const child = await spawnPostgres(launch, logFd).finally(() => closeSync(logFd));
  const pid = child.pid ?? 0;

  let serving = false;
  const exited = exitOf(child).then((outcome) => {
    if (serving) launch.log.error('embedded_postgres_died', { pid, outcome });
    return outcome;
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    serving = false;
    stopping ??= shutDown(child, exited);
    return stopping;
  };

  const failure = await waitReady(launch, pid, exited);
  if (failure === undefined) {
    serving = true;
    return { pid, exited, stop };
  }
  await stop();
  throw new PostgresStartFailed(`PostgreSQL did not start: ${failure}. The end of its log ${logFile}:\n${tail(logFile, logStart)}`);
}
