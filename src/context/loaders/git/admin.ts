/**
 * Owns: what an admin may do with repositories, and the sentences that refuse it. A repository is asked once before it is added.
 */
import { mkdir } from 'node:fs/promises';
import type { Database } from '../../../../db/pool.ts';
import {
  addRepository,
  findWorkspaceFor,
  listRepositories,
  noteRemote,
  removeRepository,
} from '../../../../db/repositories/repositories.ts';
import type { RepositoryInput, RepositoryView } from '../../../contract/repositories.ts';
import { RuntimeFault } from '../../../kernel/faults.ts';
import { uuidv7, type WorkspaceId } from '../../../kernel/ids.ts';
import type { Archives } from './archives.ts';
import { checkCloneUrl, nameFromUrl } from './clone-url.ts';
import type { Mirrors } from './mirrors.ts';
import { isRefName } from './ref-names.ts';
import type { Remotes } from './remote.ts';

/** Shorter than the patience of the command line. */
const ASK_TIMEOUT_MS = 10_000;

const PRIVATE_HINT = ' Set HEPH_GIT_ALLOW_PRIVATE=true if it really is in your network.';
const refused = (why: string) => new RuntimeFault('BAD_REQUEST', why);

export interface RepositoryAdminDeps {
  readonly db: Database;
  readonly remotes: Remotes;
  readonly mirrors: Mirrors;
  readonly archives: Archives;
  /** A folder of ours, outside of any repository. */
  readonly dir: string;
  readonly allowFile: boolean;
}

export class RepositoryAdmin {
  readonly #deps: RepositoryAdminDeps;

  constructor(deps: RepositoryAdminDeps) {
    this.#deps = deps;
  }

  list(): Promise<readonly RepositoryView[]> {
    return listRepositories(this.#deps.db);
  }

  /** Throws BAD_REQUEST, NOT_FOUND or NAME_TAKEN, each with a sentence that says what to change. */
  async add({ cloneUrl, name, workspace, branch }: RepositoryInput): Promise<void> {
    const { db, remotes, dir, allowFile } = this.#deps;
    const checked = checkCloneUrl(cloneUrl, { allowFile });
    if (checked.kind === 'refused') throw refused(checked.why);
    const called = name ?? nameFromUrl(checked.url);
    if (called === null) throw refused('No name can be made from this URL. Give one with --name.');
    if (branch !== null && !isRefName(branch)) throw refused('The branch has no name that Git allows.');
    const workspaceId = await this.#workspaceId(workspace);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const call = { url: checked.url, cwd: dir, signal: new AbortController().signal, timeoutMs: ASK_TIMEOUT_MS };
    const asked = await remotes.ask(call);
    if (asked.kind === 'failed')
      throw refused(`The repository cannot be read. ${asked.why}${asked.reason === 'address' ? PRIVATE_HINT : ''}`);
    const id = uuidv7();
    const repository = { id, workspaceId, name: called, cloneUrl: checked.url.href, chosenBranch: branch };
    if (!(await addRepository(db, repository)))
      throw new RuntimeFault('NAME_TAKEN', `There is a repository "${called}" already. Choose another name with --name.`);
    await noteRemote(db, id, asked.facts);
  }

  async remove(name: string, workspace: string | null): Promise<void> {
    const { db, mirrors, archives } = this.#deps;
    const id = await removeRepository(db, await this.#workspaceId(workspace), name);
    if (id === null) throw new RuntimeFault('NOT_FOUND', `There is no repository "${name}". heph repo list shows their names.`);
    await mirrors.forget(id);
    await archives.forget(id);
  }

  async #workspaceId(slug: string | null): Promise<WorkspaceId> {
    const id = await findWorkspaceFor(this.#deps.db, slug);
    if (id !== null) return id;
    if (slug === null) throw refused('There is more than one workspace. Say which one with --workspace.');
    throw new RuntimeFault('NOT_FOUND', `There is no workspace "${slug}".`);
  }
}
