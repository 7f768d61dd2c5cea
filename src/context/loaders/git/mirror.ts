/**
 * Owns: one mirror while one load uses it: asking its remote, fetching, and finding the commit that a ref names.
 * Rules: it holds nothing that cannot be fetched again; what a killed git left is removed before the next fetch; it never grows past its bound;
 * it is fetched again when it is older than `freshMs` or lacks what is asked for.
 * Does not own: that nobody else uses it (mirrors.ts).
 */
import { rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { filesNamed, folderBytes } from './disk.ts';
import type { Git } from './git-command.ts';
import { isCommitId, requestNumber } from './ref-names.ts';
import type { RemoteFacts, RemoteFailure, Remotes } from './remote.ts';

export interface MirrorSettings {
  /** Folder of all mirrors. */
  readonly dir: string;
  readonly freshMs: number;
  readonly mirrorMaxBytes: number;
}

export interface MirroredRepository {
  readonly id: string;
  readonly cloneUrl: string;
  readonly chosenBranch: string | null;
  readonly remoteBranch: string | null;
}

/** A commit, and what HEAD is to name in a checkout of it. `branch` null: HEAD is the commit itself. */
export interface Resolved {
  readonly kind: 'resolved';
  readonly commit: string;
  readonly branch: string | null;
  readonly fetchedAt: Date;
}
export type ResolveReply = Resolved | { readonly kind: 'notFound' | 'refused'; readonly text: string };

const FETCH_TIMEOUT_MS = 900_000;
const ASK_TIMEOUT_MS = 60_000;
const LOCAL_TIMEOUT_MS = 60_000;
const SIZE_CHECK_EVERY_MS = 500;
/** More packs than this are put together. */
const PACKS_MAX = 40;
const FETCHED_FILE = 'heph-fetched';
const ALL_REFS = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];

export interface MirrorParts {
  readonly git: Git;
  readonly remotes: Remotes;
  readonly settings: MirrorSettings;
  readonly repository: MirroredRepository;
  readonly dir: string;
  readonly signal: AbortSignal;
}

/** A mirror while it is used by one load. */
export class Mirror {
  readonly #parts: MirrorParts;
  #remoteBranch: string | null;
  /** What the remote said in this use; null: it was not asked. */
  facts: RemoteFacts | null = null;
  /** Why the remote was not asked well in this use. */
  failure: RemoteFailure | null = null;

  constructor(parts: MirrorParts) {
    this.#parts = parts;
    this.#remoteBranch = parts.repository.remoteBranch;
  }

  get dir(): string {
    return this.#parts.dir;
  }

  /** The commit that `ref` (null: the default branch) names now. A remote that does not answer is not needed for what is here. */
  async resolve(ref: string | null): Promise<ResolveReply> {
    const age = Date.now() - ((await this.#fetchedAt())?.getTime() ?? 0);
    const isFresh = age >= 0 && age < this.#parts.settings.freshMs;
    if (!isFresh) {
      const refused = await this.#refresh();
      if (refused) return refused;
    }
    const found = (await this.#find(ref)) ?? (isFresh ? await this.#findAnew(ref) : null);
    if (found) return found;
    if (this.failure) return { kind: 'refused', text: `The repository cannot be loaded now. ${this.failure.why}` };
    return { kind: 'notFound', text: ref === null ? 'The repository has no commit on its default branch.' : NO_REF };
  }

  async #findAnew(ref: string | null): Promise<ResolveReply | null> {
    return (await this.#refresh()) ?? this.#find(ref);
  }

  /** Asks and fetches. A remote that fails is noted in `failure`; null also then. */
  async #refresh(): Promise<ResolveReply | null> {
    const { remotes, repository, dir, signal } = this.#parts;
    await this.#tidy();
    const url = new URL(repository.cloneUrl);
    const asked = await remotes.ask({ url, cwd: dir, signal, timeoutMs: ASK_TIMEOUT_MS });
    this.failure = asked.kind === 'failed' ? asked : null;
    if (asked.kind === 'failed') return null;
    this.facts = asked.facts;
    this.#remoteBranch = asked.facts.headBranch;
    return this.#fetch(ALL_REFS, true);
  }

  async #fetch(refspecs: readonly string[], prune: boolean): Promise<ResolveReply | null> {
    const { remotes, repository, dir, signal, settings } = this.#parts;
    const tooLarge = new AbortController();
    const measure = async () => {
      if ((await folderBytes(dir)) > settings.mirrorMaxBytes) tooLarge.abort(new Error('the mirror is too large'));
    };
    const timer = setInterval(() => void measure(), SIZE_CHECK_EVERY_MS);
    try {
      const call = { url: new URL(repository.cloneUrl), cwd: dir, timeoutMs: FETCH_TIMEOUT_MS, prune };
      this.failure = await remotes.fetch(refspecs, { ...call, signal: AbortSignal.any([signal, tooLarge.signal]) });
      await measure();
    } catch (error) {
      if (!tooLarge.signal.aborted) throw error;
    } finally {
      clearInterval(timer);
    }
    if (tooLarge.signal.aborted) return this.#giveUp();
    if (this.failure === null && prune) await this.#noteFetched();
    await this.#repack();
    return null;
  }

  async #giveUp(): Promise<ResolveReply> {
    await rm(this.#parts.dir, { recursive: true, force: true });
    const mib = Math.floor(this.#parts.settings.mirrorMaxBytes / (1024 * 1024));
    return { kind: 'refused', text: `The repository is larger than ${mib} MiB, which is the limit of this installation.` };
  }

  async #find(ref: string | null): Promise<ResolveReply | null> {
    const branch = ref ?? this.#parts.repository.chosenBranch ?? this.#remoteBranch;
    if (branch === null) return null;
    const ofBranch = await this.#commit(`refs/heads/${branch}`);
    if (ofBranch !== null || ref === null) return ofBranch === null ? null : this.#resolved(ofBranch, branch);
    const number = requestNumber(ref);
    if (number !== null) await this.#fetchRequest(number);
    const names = number === null ? [`refs/tags/${ref}`] : [`refs/pull/${number}/head`, `refs/merge-requests/${number}/head`];
    if (isCommitId(ref)) names.push(ref);
    for (const name of names) {
      const commit = await this.#commit(name);
      if (commit !== null) return this.#resolved(commit, null);
    }
    return null;
  }

  /** The head of a request moves, so it is fetched each time; a remote has one of the two, or none. */
  async #fetchRequest(number: number): Promise<void> {
    for (const folder of ['pull', 'merge-requests']) {
      const ref = `refs/${folder}/${number}/head`;
      if ((await this.#fetch([`+${ref}:${ref}`], false)) !== null || this.failure === null) return;
    }
    this.failure = null; // a missing ref and a missing remote look the same here; what was fetched before still counts
  }

  async #resolved(commit: string, branch: string | null): Promise<Resolved> {
    return { kind: 'resolved', commit, branch, fetchedAt: (await this.#fetchedAt()) ?? new Date() };
  }

  async #commit(name: string): Promise<string | null> {
    const { git, dir, signal } = this.#parts;
    const args = ['--git-dir=.', 'rev-parse', '--verify', '--quiet', `${name}^{commit}`];
    const { code, stdout } = await git.run(args, { cwd: dir, signal, timeoutMs: LOCAL_TIMEOUT_MS });
    const id = stdout.toString('latin1').trim();
    return code === 0 && /^[0-9a-f]{40}$/.test(id) ? id : null;
  }

  /** Removes what a killed git leaves: locks, and packs that were not finished. Nobody else uses the mirror now. */
  async #tidy(): Promise<void> {
    const { dir } = this.#parts;
    // No ref ends with .lock; one may well begin with tmp_.
    const left = [...(await filesNamed(dir, /\.lock$/)), ...(await filesNamed(path.join(dir, 'objects'), /^tmp_|^\.tmp-/))];
    await Promise.all(left.map((file) => rm(file, { force: true })));
  }

  async #repack(): Promise<void> {
    const { git, dir, signal } = this.#parts;
    const packs = await filesNamed(path.join(dir, 'objects/pack'), /\.pack$/);
    if (packs.length <= PACKS_MAX) return;
    await git.run(['--git-dir=.', 'repack', '-a', '-d', '-q'], { cwd: dir, signal, timeoutMs: FETCH_TIMEOUT_MS });
  }

  async #fetchedAt(): Promise<Date | null> {
    return stat(path.join(this.#parts.dir, FETCHED_FILE)).then(
      ({ mtime }) => mtime,
      () => null,
    );
  }

  async #noteFetched(): Promise<void> {
    const file = path.join(this.#parts.dir, FETCHED_FILE);
    await writeFile(file, '');
    await utimes(file, new Date(), new Date());
  }
}

const NO_REF = 'The repository has no such branch, tag, request or commit. INDEX.md says what can stand behind @.';
