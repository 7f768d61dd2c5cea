/**
 * Owns: the mirrors of this server: one bare repository for each row, with the remote's branches and tags, and the request heads that were
 * asked for. One user at a time. Does not own: what is done with one (mirror.ts).
 */
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { uuidv7 } from '../../../kernel/ids.ts';
import type { Git } from './git-command.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { Mirror, type MirroredRepository, type MirrorSettings } from './mirror.ts';
import type { Remotes } from './remote.ts';

const INIT_TIMEOUT_MS = 60_000;

export class Mirrors {
  readonly #deps: { readonly git: Git; readonly remotes: Remotes; readonly settings: MirrorSettings };
  readonly #mutex = new KeyedMutex();

  constructor(deps: { readonly git: Git; readonly remotes: Remotes; readonly settings: MirrorSettings }) {
    this.#deps = deps;
  }

  /** Runs `work` with the mirror of a repository, alone. The mirror is made when there is none yet. */
  use<T>(repository: MirroredRepository, signal: AbortSignal, work: (mirror: Mirror) => Promise<T>): Promise<T> {
    return this.#mutex.run(repository.id, signal, async () => {
      const dir = this.#folder(repository.id);
      await this.#make(dir, signal);
      return work(new Mirror({ ...this.#deps, repository, dir, signal }));
    });
  }

  async forget(repositoryId: string): Promise<void> {
    await this.#mutex.run(repositoryId, new AbortController().signal, () =>
      rm(this.#folder(repositoryId), { recursive: true, force: true }),
    );
  }

  /** Removes the mirrors of repositories that are no more, and what an earlier server left half made. */
  async sweep(repositoryIds: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#deps.settings.dir).catch(() => []);
    for (const name of names) {
      const id = /^([0-9a-f-]{36})\.git$/.exec(name)?.[1];
      if (id === undefined || !repositoryIds.has(id)) await rm(path.join(this.#deps.settings.dir, name), { recursive: true, force: true });
    }
  }

  #folder(repositoryId: string): string {
    return path.join(this.#deps.settings.dir, `${repositoryId}.git`);
  }

  /** Under another name first: a folder with the right name is a whole repository. */
  async #make(dir: string, signal: AbortSignal): Promise<void> {
    if (await exists(dir)) return;
    const parent = path.dirname(dir);
    await mkdir(parent, { recursive: true, mode: 0o700 });
    const fresh = path.join(parent, `new-${uuidv7()}`);
    const args = ['init', '--quiet', '--bare', '--template=', '--initial-branch=main', '--', fresh];
    const { code } = await this.#deps.git.run(args, { cwd: parent, signal, timeoutMs: INIT_TIMEOUT_MS });
    if (code !== 0) throw new Error('git could not make a mirror');
    await rename(fresh, dir);
  }
}

async function exists(dir: string): Promise<boolean> {
  return stat(dir).then(
    () => true,
    () => false,
  );
}
