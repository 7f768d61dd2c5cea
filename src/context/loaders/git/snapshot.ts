/**
 * Owns: a commit as an archive: its files, and a `.git` with the history that it reaches, as after a clone without links, hooks or filters.
 * It is built from git's objects and never checked out here. Deterministic up to git's own packing.
 * Does not own: which commit (mirror.ts), where archives are kept (archives.ts). Limits: bytes of the archive, files of the tree.
 */
import { createReadStream } from 'node:fs';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { LIMITS } from '../../../contract/limits.ts';
import { ArchiveTooLarge, entryBytes, TarFileWriter } from '../../tar-file.ts';
import type { Git, GitResult } from './git-command.ts';
import type { Resolved } from './mirror.ts';
import { BatchReader, readTree, type Tree, type TreeFile } from './tree.ts';

export interface SnapshotRequest {
  readonly git: Git;
  /** The bare repository that has the commit. */
  readonly mirrorDir: string;
  /** An empty folder for what is needed on the way; the caller removes it. */
  readonly workDir: string;
  /** Where the archive goes; it must not exist. */
  readonly archive: string;
  readonly at: Pick<Resolved, 'commit' | 'branch'>;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

export type Snapshot =
  | { readonly kind: 'built'; readonly bytes: number; readonly sha256: string; readonly omittedFiles: number }
  | { readonly kind: 'tooLarge' }
  /** The tree has names that git itself would not check out (`.git`, `..`, …). */
  | { readonly kind: 'hostile' };

/** A path in the archive, UTF-8. */
export const SNAPSHOT_PATH_MAX_BYTES = 400;
const TAGS_MAX = 1_000;
const STEP_TIMEOUT_MS = 600_000;
const LISTING_MAX_BYTES = 64 * 1024 * 1024;
const MODES = { folder: 0o755, file: 0o444, program: 0o555 } as const;

export async function buildSnapshot(request: SnapshotRequest): Promise<Snapshot> {
  const { archive, maxBytes } = request;
  const tree = await listTree(request);
  if (tree === null || contentBytes(tree) > maxBytes || (await historyBytes(request)) > maxBytes) return { kind: 'tooLarge' };
  if (!(await makeRepository(request))) return { kind: 'hostile' };
  const tar = await TarFileWriter.create(archive, maxBytes);
  try {
    const mtimeS = await commitTimeS(request);
    await writeRepository(tar, request, mtimeS);
    await writeFiles(tar, request, { tree, mtimeS });
    return { kind: 'built', ...(await tar.finish()), omittedFiles: tree.omitted };
  } catch (error) {
    if (error instanceof ArchiveTooLarge) return { kind: 'tooLarge' };
    throw error;
  } finally {
    await tar.close();
  }
}

function contentBytes({ files }: Tree): number {
  return files.reduce((sum, { bytes }) => sum + entryBytes(bytes), 0);
}

/** null: more files than may be. */
async function listTree(request: SnapshotRequest): Promise<Tree | null> {
  const args = ['ls-tree', '-r', '-z', '-l', '--full-tree', request.at.commit];
  const result = await mirrorGit(request, args, { outputMaxBytes: LISTING_MAX_BYTES });
  if (result.how === 'output') return null;
  const tree = readTree(done(result, 'list a tree'), SNAPSHOT_PATH_MAX_BYTES);
  return tree.files.length + tree.submodules.length > LIMITS.loadFilesMax ? null : tree;
}

/** What the history takes on disk here, which is about what it takes in a pack of its own. */
async function historyBytes(request: SnapshotRequest): Promise<number> {
  const result = await mirrorGit(request, ['rev-list', '--objects', '--disk-usage', request.at.commit]);
  return Number(done(result, 'measure a history').toString('latin1'));
}

async function commitTimeS(request: SnapshotRequest): Promise<number> {
  const result = await mirrorGit(request, ['show', '--no-patch', '--format=%ct', request.at.commit]);
  return Number(done(result, 'read a commit').toString('latin1').trim()) || 0;
}

/** A bare repository in the work folder with the commit's history, its tags and an index. False: git refuses a name of the tree. */
async function makeRepository(request: SnapshotRequest): Promise<boolean> {
  const { git, workDir, at, signal } = request;
  const packs = path.join(workDir, 'objects/pack');
  await Promise.all([mkdir(packs, { recursive: true }), mkdir(path.join(workDir, 'refs/heads'), { recursive: true })]);
  const pack = ['pack-objects', '-q', '--revs', '--include-tag', '--delta-base-offset', path.join(packs, 'pack')];
  done(await mirrorGit(request, pack, { input: `${at.commit}\n` }), 'pack a history');
  await writeFile(path.join(workDir, 'HEAD'), at.branch === null ? `${at.commit}\n` : `ref: refs/heads/${at.branch}\n`);
  await writeFile(path.join(workDir, 'config'), CONFIG);
  await writeFile(path.join(workDir, 'packed-refs'), await packedRefs(request));
  const args = ['--git-dir=.', 'read-tree', at.commit];
  const read = await git.run(args, { cwd: workDir, signal, timeoutMs: STEP_TIMEOUT_MS });
  return read.code === 0;
}

const CONFIG = `[core]
	repositoryformatversion = 0
	bare = false
	filemode = true
	symlinks = false
	logallrefupdates = false
	fsmonitor = false
	hooksPath = /dev/null
[gc]
	auto = 0
[maintenance]
	auto = false
`;

/** The branch, and the newest tags of the history. */
async function packedRefs(request: SnapshotRequest): Promise<string> {
  const { commit, branch } = request.at;
  const format = '--format=%(objectname) %(refname)';
  const tags = ['for-each-ref', `--merged=${commit}`, '--sort=-creatordate', `--count=${TAGS_MAX}`, format, 'refs/tags'];
  const lines = done(await mirrorGit(request, tags), 'list tags')
    .toString('utf8')
    .split('\n')
    .filter(Boolean);
  if (branch !== null) lines.push(`${commit} refs/heads/${branch}`);
  const name = (line: string) => line.slice(line.indexOf(' ') + 1);
  return `# pack-refs with: \n${lines.sort((a, b) => (name(a) < name(b) ? -1 : 1)).join('\n')}\n`;
}

async function writeRepository(tar: TarFileWriter, { workDir }: SnapshotRequest, mtimeS: number): Promise<void> {
  for (const folder of ['.git', '.git/refs', '.git/refs/heads', '.git/objects', '.git/objects/pack'])
    await tar.directory({ path: folder, mode: MODES.folder, mtimeS });
  const packs = (await readdir(path.join(workDir, 'objects/pack'))).sort().map((name) => `objects/pack/${name}`);
  for (const name of ['HEAD', 'config', 'index', 'packed-refs', ...packs]) {
    const file = path.join(workDir, name);
    const { size } = await stat(file);
    await tar.file({ path: `.git/${name}`, bytes: size, mode: MODES.file, mtimeS }, createReadStream(file));
  }
}

async function writeFiles(tar: TarFileWriter, request: SnapshotRequest, { tree, mtimeS }: { tree: Tree; mtimeS: number }): Promise<void> {
  const { git, mirrorDir: cwd, signal } = request;
  for (const folder of tree.submodules) await tar.directory({ path: folder, mode: MODES.folder, mtimeS });
  const input = tree.files.map(({ object }) => `${object}\n`).join('');
  const reading = new AbortController();
  const batch = git.stream(['--git-dir=.', 'cat-file', '--batch'], {
    ...{ cwd, input, timeoutMs: STEP_TIMEOUT_MS },
    signal: AbortSignal.any([signal, reading.signal]),
  });
  try {
    const contents = new BatchReader(batch.stdout);
    for (const file of tree.files) await tar.file(entryOf(file, mtimeS), contents.next(file));
    await batch.ended;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    reading.abort();
  }
}

function entryOf({ path: name, bytes, executable }: TreeFile, mtimeS: number) {
  return { path: name, bytes, mtimeS, mode: executable ? MODES.program : MODES.file };
}

function mirrorGit(
  { git, mirrorDir, signal }: SnapshotRequest,
  args: readonly string[],
  more: { readonly input?: string; readonly outputMaxBytes?: number } = {},
): Promise<GitResult> {
  return git.run(['--git-dir=.', ...args], { cwd: mirrorDir, signal, timeoutMs: STEP_TIMEOUT_MS, ...more });
}

/** The output of a step that cannot fail on a whole mirror. */
function done({ how, code, stdout }: GitResult, step: string): Buffer {
  if (how !== 'exited' || code !== 0) throw new Error(`git could not ${step} (${how}, exit code ${code})`);
  return stdout;
}
