/**
 * Owns: what lies in HEPH_DATA_DIR for PostgreSQL: the cluster `postgres/`, its password `postgres.password`, its log `postgres.log`.
 * A cluster appears whole or not at all: initdb works in a directory of its own, which is renamed when it is on disk.
 * Does not own: who may use the directory now (lock.ts) or the running server (supervise.ts).
 */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { newSecret } from '../../src/kernel/ids.ts';
import type { Binaries } from './binaries.ts';
import { DataDirUnusable, PostgresStartFailed } from './errors.ts';
import { childOptions, closedDirectory, type LentUser } from './user.ts';

export interface Layout {
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly passwordFile: string;
  readonly logFile: string;
}

/** The role that owns the cluster. */
export const SUPERUSER = 'postgres';
/** The database of Heph in it. */
export const DATABASE = 'heph';

const INITDB_TIMEOUT_MS = 120_000;
const DRAFT_PREFIX = 'postgres.init-';
const PASSWORD = /^[A-Za-z0-9_-]{32,128}$/;
/** As root the lent user must pass through the data directory to its cluster; it may not list it. */
const MODE_AS_ROOT = 0o711;
const MODE = 0o700;

/**
 * Makes a directory and what is missing above it. Not `mkdirSync({recursive})`: where a file system answers ENOENT for a child of a
 * directory that exists (/proc), Node tries again for ever.
 */
function makeDirs(dir: string, mode: number): void {
  const parent = dirname(dir);
  if (!existsSync(parent)) makeDirs(parent, mode);
  try {
    mkdirSync(dir, { mode });
  } catch (error) {
    // It was there, or another starter has made it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(dir).isDirectory()) throw error;
  }
}

/** Makes the data directory if needed. The path in the result has no symbolic links, so one directory has one name. */
export function openDataDir(dataDir: string): Layout {
  const wanted = resolve(dataDir);
  const asRoot = process.getuid?.() === 0;
  makeDirs(wanted, asRoot ? MODE_AS_ROOT : MODE);
  const real = realpathSync(wanted);
  const contents = readdirSync(real);
  // A directory that is ours and holds nothing yet is set up as if it had been made here.
  if (asRoot && contents.length === 0 && statSync(real).uid === 0) chmodSync(real, statSync(real).mode | MODE_AS_ROOT);
  return {
    dataDir: real,
    clusterDir: join(real, 'postgres'),
    passwordFile: join(real, 'postgres.password'),
    logFile: join(real, 'postgres.log'),
  };
}

/** @throws DataDirUnusable if a directory above the cluster is closed to `user`. */
export function assertReachable({ dataDir }: Layout, user: LentUser | undefined): void {
  const closed = user === undefined ? undefined : closedDirectory(dataDir, user);
  if (closed === undefined) return;
  throw new DataDirUnusable(dataDir, {
    why: `PostgreSQL does not run as root, and user ${user?.uid} may not enter ${closed}.`,
    whatToDo: `Allow it with chmod o+x '${closed}', set HEPH_DATA_DIR to a directory elsewhere, or start Heph as an ordinary user.`,
  });
}

/** Forces a directory's entries, or a file, to disk. */
function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The password of the cluster; undefined without one that is whole. */
export function readPassword({ passwordFile }: Pick<Layout, 'passwordFile'>): string | undefined {
  const password = existsSync(passwordFile) ? readFileSync(passwordFile, 'utf8').trim() : '';
  return PASSWORD.test(password) ? password : undefined;
}

function createPassword({ dataDir, passwordFile }: Layout): string {
  const password = newSecret();
  const draft = join(dataDir, `${DRAFT_PREFIX}secret`);
  writeFileSync(draft, password, { mode: 0o600 });
  sync(draft);
  renameSync(draft, passwordFile);
  sync(dataDir);
  return password;
}

function versionOf(layout: Layout): number | undefined {
  const file = join(layout.clusterDir, 'PG_VERSION');
  if (existsSync(file)) return Number.parseInt(readFileSync(file, 'utf8'), 10);
  const found = statSync(layout.clusterDir, { throwIfNoEntry: false });
  if (found === undefined || (found.isDirectory() && readdirSync(layout.clusterDir).length === 0)) return undefined;
  throw new DataDirUnusable(layout.dataDir, {
    why: `${layout.clusterDir} exists and is not a PostgreSQL database.`,
    whatToDo: 'Heph does not touch it: move it away, or set HEPH_DATA_DIR to another directory.',
  });
}

/** Runs initdb. UTF-8 and code point order whatever the machine's LANG is; a password from the first moment on. */
async function initialise(layout: Layout, tools: Tools & { password: string }): Promise<void> {
  const draftDir = join(layout.dataDir, `${DRAFT_PREFIX}${newSecret().slice(0, 12)}`);
  const passwordCopy = `${draftDir}.password`;
  const own = (path: string) => tools.user && chownSync(path, tools.user.uid, tools.user.gid);
  mkdirSync(draftDir, { mode: MODE });
  own(draftDir);
  writeFileSync(passwordCopy, tools.password, { mode: 0o600 });
  own(passwordCopy);
  const args = ['-D', draftDir, '-U', SUPERUSER, '-A', 'scram-sha-256', `--pwfile=${passwordCopy}`, '--no-instructions'];
  args.push('-E', 'UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C');
  try {
    await promisify(execFile)(tools.binaries.initdb, args, { ...childOptions(tools.user), timeout: INITDB_TIMEOUT_MS });
    rmSync(passwordCopy);
    renameSync(draftDir, layout.clusterDir);
    // Without this a power cut could bring the draft's name back, and the next start would sweep it with all that was stored in it.
    sync(dirname(layout.clusterDir));
  } catch (error) {
    removeDrafts(layout);
    const said = (error as { stderr?: string }).stderr;
    if (said === undefined) throw error;
    const reason = said.trim().slice(-1_000) || (error as Error).message;
    throw new PostgresStartFailed(`PostgreSQL could not create its database in ${layout.dataDir}: ${reason}`, { cause: error });
  }
}

/** Removes what an interrupted initialisation left behind. */
function removeDrafts({ dataDir }: Layout): void {
  for (const name of readdirSync(dataDir)) {
    if (basename(name).startsWith(DRAFT_PREFIX)) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}

/**
 * Moves a cluster of another major version out of the way, whole, and returns where it is now; undefined when there is none. The caller holds the
 * server lock, and nothing runs on it.
 */
export function keepAside(layout: Layout, majorVersion: number): string | undefined {
  const version = versionOf(layout);
  if (version === undefined || version === majorVersion) return undefined;
  const name = `${layout.clusterDir}-${version}`;
  let kept = name;
  for (let n = 2; existsSync(kept); n++) kept = `${name}.${n}`;
  renameSync(layout.clusterDir, kept);
  sync(layout.dataDir);
  return kept;
}

/** Undoes `keepAside`: what was made in its place is removed. The caller holds the server lock, and nothing runs on either. */
export function putBack(layout: Layout, kept: string): void {
  rmSync(layout.clusterDir, { recursive: true, force: true });
  renameSync(kept, layout.clusterDir);
  sync(layout.dataDir);
}

interface Tools {
  readonly binaries: Binaries;
  readonly user: LentUser | undefined;
}

/**
 * The password of a cluster that is ready to be started; makes the cluster at the first start. The caller holds the server lock.
 * @throws DataDirUnusable if what is there is of another version, is not ours, or has lost its password.
 */
export async function prepareCluster(layout: Layout, tools: Tools): Promise<{ password: string; created: boolean }> {
  removeDrafts(layout);
  const version = versionOf(layout);
  const known = readPassword(layout);
  if (version === undefined) {
    const password = known ?? createPassword(layout);
    await initialise(layout, { ...tools, password });
    return { password, created: true };
  }
  const ours = tools.binaries.majorVersion;
  if (version !== ours) {
    throw new DataDirUnusable(layout.dataDir, {
      why: `Its database was written by PostgreSQL ${version}, and this Heph brings PostgreSQL ${ours}, which cannot read it.`,
      whatToDo:
        'Start the Heph that wrote it, or move the data: heph backup FILE with that one, then heph restore FILE with this one, which keeps the ' +
        'old database; or set HEPH_DATA_DIR to a new directory.',
    });
  }
  if (known !== undefined) return { password: known, created: false };
  throw new DataDirUnusable(layout.dataDir, {
    why: `The password of its database is missing: ${layout.passwordFile} is not there or is damaged.`,
    whatToDo: `Put that file back from a backup, or move ${layout.clusterDir} away to start with an empty database.`,
  });
}
