/**
 * The door of the git loader: puts its parts together for one server. Folders: `<dataDir>/mirrors` and `<dataDir>/archives`.
 */
import { mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { Database } from '../../../../db/pool.ts';
import { repositoryIds } from '../../../../db/repositories/repositories.ts';
import type { Log } from '../../../kernel/log.ts';
import type { ContextLoader } from '../../spi.ts';
import { RepositoryAdmin } from './admin.ts';
import { Archives } from './archives.ts';
import { Git, type GitSettings } from './git-command.ts';
import { gitLoader } from './loader.ts';
import { Mirrors } from './mirrors.ts';
import { Remotes, type ResolveHost } from './remote.ts';

export type { RepositoryAdmin } from './admin.ts';
export type { ResolveHost } from './remote.ts';

export interface GitLoaderSettings extends GitSettings {
  /** The data directory of this server. */
  readonly dataDir: string;
  /** A mirror that was fetched longer ago is fetched again before it is used. */
  readonly freshMs: number;
  /** Of one archive. */
  readonly snapshotMaxBytes: number;
  /** Of one mirror. */
  readonly mirrorMaxBytes: number;
  /** Of all archives that are kept for the next load. */
  readonly archivesMaxBytes: number;
}

export interface GitRepositories {
  readonly loader: ContextLoader;
  readonly admin: RepositoryAdmin;
}

/** The first git that can be told which address to connect to (`http.curloptResolve`). */
const OLDEST_GIT = { major: 2, minor: 37 };
const VERSION_TIMEOUT_MS = 10_000;

/** null, with a line in the log, when there is no git that can do what is needed: then nothing under `repos/` is offered. */
export async function openGitRepositories(
  settings: GitLoaderSettings,
  { db, log, resolveHost }: { readonly db: Database; readonly log: Log; readonly resolveHost: ResolveHost },
): Promise<GitRepositories | null> {
  await mkdir(settings.dataDir, { recursive: true });
  const dataDir = await realpath(settings.dataDir); // git compares its ceiling with real paths
  const git = new Git(settings);
  const version = await gitVersion(git, dataDir);
  if (version === null || version.major < OLDEST_GIT.major || (version.major === OLDEST_GIT.major && version.minor < OLDEST_GIT.minor)) {
    const found = version === null ? 'none' : `${version.major}.${version.minor}`;
    log.warn('git_unusable', { found, needed: `${OLDEST_GIT.major}.${OLDEST_GIT.minor}` });
    return null;
  }
  const dir = path.join(dataDir, 'mirrors');
  const remotes = new Remotes(git, resolveHost);
  const mirrors = new Mirrors({ git, remotes, settings: { ...settings, dir } });
  const archives = new Archives(path.join(dataDir, 'archives'), settings.archivesMaxBytes);
  await Promise.all([repositoryIds(db).then((ids) => mirrors.sweep(ids)), archives.sweep()]);
  return {
    loader: gitLoader({ db, git, mirrors, archives, snapshotMaxBytes: settings.snapshotMaxBytes, log }),
    admin: new RepositoryAdmin({ db, remotes, mirrors, archives, dir, allowFile: settings.allowFile }),
  };
}

async function gitVersion(git: Git, cwd: string): Promise<{ readonly major: number; readonly minor: number } | null> {
  const { code, stdout } = await git.run(['version'], { cwd, signal: new AbortController().signal, timeoutMs: VERSION_TIMEOUT_MS });
  const parts = /^git version (\d+)\.(\d+)/.exec(stdout.toString('latin1'));
  return code === 0 && parts ? { major: Number(parts[1]), minor: Number(parts[2]) } : null;
}
