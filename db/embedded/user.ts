/**
 * Owns: whom PostgreSQL runs as. It refuses to be root, so a server that is root lends it another user; no user is ever created.
 * An existing cluster keeps its owner, so that a start as root after starts as an ordinary user (or the reverse of installing a `postgres`
 * user later) changes nothing on disk.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DataDirUnusable, PostgresUnavailable } from './errors.ts';
import { CHILD_ENV } from './processes.ts';

/** A user other than the one this process runs as. */
export interface LentUser {
  readonly uid: number;
  readonly gid: number;
}

const CANDIDATES = ['postgres', '_postgres', 'nobody'];

function fromPasswd(): LentUser {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of CANDIDATES) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (Number(uid) > 0 && Number(gid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new PostgresUnavailable(
    'PostgreSQL does not run as root, and this machine has neither a user postgres nor a user nobody to run it as. ' +
      'Start Heph as an ordinary user, or set HEPH_DATABASE_URL to a PostgreSQL of your own.',
  );
}

/**
 * The user to lend to PostgreSQL; undefined if it runs as we do.
 * @throws DataDirUnusable if the cluster belongs to somebody it cannot run as.
 */
export function lentUser(dataDir: string, clusterDir: string): LentUser | undefined {
  const uid = process.getuid?.() ?? 0;
  const cluster = statSync(clusterDir, { throwIfNoEntry: false });
  if (uid !== 0) {
    if (cluster === undefined || cluster.uid === uid) return undefined;
    const why = `Its database belongs to user ${cluster.uid}, and this server runs as user ${uid}.`;
    throw new DataDirUnusable(dataDir, { why, whatToDo: 'Start Heph as that user or as root, or set HEPH_DATA_DIR to another directory.' });
  }
  if (cluster === undefined || !existsSync(join(clusterDir, 'PG_VERSION'))) return fromPasswd();
  if (cluster.uid !== 0) return { uid: cluster.uid, gid: cluster.gid };
  const { uid: to } = fromPasswd();
  const why = `${clusterDir} belongs to root, and PostgreSQL does not run as root.`;
  throw new DataDirUnusable(dataDir, { why, whatToDo: `Give it away: chown -R ${to} '${clusterDir}'` });
}

/** Options for a child that runs as `user`, with nothing of our environment. */
export function childOptions(user: LentUser | undefined): { env: Record<string, string>; cwd: string; uid?: number; gid?: number } {
  // The current directory may be closed to that user, and PostgreSQL asks for it.
  return { env: { ...CHILD_ENV }, cwd: '/', ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }) };
}

/** The topmost directory on the way to `path` (itself included) that `user` may not enter, going by its permission bits. */
export function closedDirectory(path: string, user: LentUser): string | undefined {
  const parent = dirname(path);
  const above = parent === path ? undefined : closedDirectory(parent, user);
  if (above !== undefined) return above;
  const { uid, gid, mode } = statSync(path);
  const enterBit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  return mode & enterBit ? undefined : path;
}
