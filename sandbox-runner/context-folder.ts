/**
 * Owns: the folder that stands for `/workspace/work`: emptied before each turn, filled from the context's archive, item documents that
 * are fetched on their first read, and the mapping between its path on the wire and on this machine.
 * Does not own: reading the archive (tar.ts) and loaded repositories (load.ts). Files are read-only; nothing is written when any part of
 * the archive is refused; an item document is complete before it has its name.
 */
import { chmod, lstat, mkdir, readdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { uuidv7 } from '../src/kernel/ids.ts';
import { WORKSPACE_DIR } from './config.ts';
import { readTar } from './tar.ts';

const FILE_MODE = 0o444;
const FOLDER_MODE = 0o755;

/** Paths that a document's `resource` field may name, for example `inputs/context/review_attempts/pr/7.json`. */
const ITEM_PATH = /^inputs\/context(\/[\w-]+)+\/[\w.-]+\.json$/;

/** The words of an item document, from its path in the folder. Throws an Error with words for the model. */
export type FetchDocument = (path: string) => Promise<string>;

export interface ContextFolder {
  /** The real path of the folder on this machine. */
  readonly localDir: string;
  /** Paths of the fixed documents, relative: nothing may take their place. */
  readonly fixed: readonly string[];
  /**
   * The local path of a regular file of the folder, from its path on the wire. Throws an Error with words for the model when the path
   * leads out of the folder, through a link, or to nothing. An item document that is not there yet is fetched, once.
   */
  resolveFile(wirePath: string): Promise<string>;
}

/** Empties the folder and stages the archive (Base64 tar). Throws TarRefused with the folder empty. */
export async function stageContextFolder(workDir: string, documents: string, fetchDocument: FetchDocument): Promise<ContextFolder> {
  await emptyFolder(workDir);
  const localDir = await realpath(workDir);
  const { directories, files } = readTar(Buffer.from(documents, 'base64'));
  for (const directory of directories) await mkdir(join(localDir, directory), { mode: FOLDER_MODE });
  await Promise.all(files.map((file) => writeFile(join(localDir, file.path), file.data, { mode: FILE_MODE, flag: 'wx' })));
  const items = new ItemDocuments(localDir, fetchDocument);
  return { localDir, fixed: files.map((file) => file.path), resolveFile: (wirePath) => resolveFile(localDir, items, wirePath) };
}

/** Item documents of one turn. */
class ItemDocuments {
  readonly #localDir: string;
  readonly #fetch: FetchDocument;
  /** Reads that come while a document is fetched wait for it. One that failed is asked for again. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(localDir: string, fetchDocument: FetchDocument) {
    this.#localDir = localDir;
    this.#fetch = fetchDocument;
  }

  stage(path: string): Promise<void> {
    const staged = this.#underWay.get(path) ?? this.#stage(path).finally(() => this.#underWay.delete(path));
    this.#underWay.set(path, staged);
    return staged;
  }

  async #stage(path: string): Promise<void> {
    const content = await this.#fetch(path);
    const folder = await makeFolder(this.#localDir, dirname(path));
    const part = join(folder, `.${uuidv7()}`);
    await writeFile(part, content, { mode: FILE_MODE, flag: 'wx' });
    await rename(part, join(this.#localDir, path));
  }
}

/** Makes the folder `path` of the context folder and returns where it is. Throws when a link or a file stands on the way. */
export async function makeFolder(localDir: string, path: string): Promise<string> {
  let folder = localDir;
  // Step by step: a link that a command has made must not be followed, not even to make a folder behind it.
  for (const segment of path.split('/')) {
    folder = join(folder, segment);
    await mkdir(folder, { mode: FOLDER_MODE }).catch(() => undefined);
    const found = await lstat(folder).catch(() => null);
    if (found?.isDirectory() !== true) throw new Error('Something stands in the way in the context folder. Remove it first.');
  }
  return folder;
}

/** Makes `dir` an empty folder of our own. A link in its place is removed, never followed. */
export async function emptyFolder(dir: string): Promise<void> {
  const found = await lstat(dir).catch(() => null);
  if (found !== null && !found.isDirectory()) await rm(dir, { force: true });
  await mkdir(dir, { recursive: true, mode: FOLDER_MODE });
  await chmod(dir, FOLDER_MODE);
  for (const name of await readdir(dir)) await removeTree(join(dir, name));
}

/** Removes a file or a folder, also one that a command has made unreadable. Links are not followed. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await openFolders(path);
    await rm(path, { recursive: true, force: true });
  }
}

async function openFolders(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found === null || !found.isDirectory()) return;
  await chmod(path, 0o700);
  for (const name of await readdir(path)) await openFolders(join(path, name));
}

async function resolveFile(localDir: string, items: ItemDocuments, wirePath: string): Promise<string> {
  const path = posix.resolve(WORKSPACE_DIR, wirePath);
  const inside = posix.relative(WORKSPACE_DIR, path);
  if (inside === '' || inside === '..' || inside.startsWith('../')) {
    // Without the path: a tilde has become a folder of this machine.
    throw new Error(`That path is outside the context folder. Only files under ${WORKSPACE_DIR} can be read.`);
  }
  const local = join(localDir, inside);
  const isThere = await lstat(local).then(Boolean, () => false);
  if (!isThere && ITEM_PATH.test(inside)) await items.stage(inside);
  const real = await realpath(local).catch(() => null);
  if (real === null) throw new Error(`There is no file ${path}. INDEX.md lists what can be read.`);
  // A link anywhere on the way makes the two differ.
  if (real !== local) throw new Error(`${path} is a link. Only the files themselves can be read.`);
  const found = await lstat(real);
  if (!found.isFile()) throw new Error(`${path} is not a file. INDEX.md lists what can be read.`);
  return real;
}
