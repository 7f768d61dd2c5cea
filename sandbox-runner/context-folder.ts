/**
 * Owns: the folder that stands for `/workspace/work`: emptied before each turn, filled from the context's archive, and the mapping
 * between its path on the wire and on this machine.
 * Does not own: reading the archive (tar.ts). Files are read-only; nothing is written when any part of the archive is refused.
 */
import { chmod, lstat, mkdir, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { WORKSPACE_DIR } from './config.ts';
import { readTar } from './tar.ts';

const FILE_MODE = 0o444;
const FOLDER_MODE = 0o755;

export interface ContextFolder {
  /** The real path of the folder on this machine. */
  readonly localDir: string;
  /**
   * The local path of a regular file of the folder, from its path on the wire. Throws an Error with words for the model when the path
   * leads out of the folder, through a link, or to nothing.
   */
  resolveFile(wirePath: string): Promise<string>;
}

/** Empties the folder and stages the archive (Base64 tar). Throws TarRefused with the folder empty. */
export async function stageContextFolder(workDir: string, documents: string): Promise<ContextFolder> {
  await emptyFolder(workDir);
  const localDir = await realpath(workDir);
  const { directories, files } = readTar(Buffer.from(documents, 'base64'));
  for (const directory of directories) await mkdir(join(localDir, directory), { mode: FOLDER_MODE });
  await Promise.all(files.map((file) => writeFile(join(localDir, file.path), file.data, { mode: FILE_MODE, flag: 'wx' })));
  return { localDir, resolveFile: (wirePath) => resolveFile(localDir, wirePath) };
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

async function resolveFile(localDir: string, wirePath: string): Promise<string> {
  const path = posix.resolve(WORKSPACE_DIR, wirePath);
  const inside = posix.relative(WORKSPACE_DIR, path);
  if (inside === '' || inside === '..' || inside.startsWith('../')) {
    // Without the path: a tilde has become a folder of this machine.
    throw new Error(`That path is outside the context folder. Only files under ${WORKSPACE_DIR} can be read.`);
  }
  const local = join(localDir, inside);
  const real = await realpath(local).catch(() => null);
  if (real === null) throw new Error(`There is no file ${path}. INDEX.md lists what can be read.`);
  // A link anywhere on the way makes the two differ.
  if (real !== local) throw new Error(`${path} is a link. Only the files themselves can be read.`);
  const found = await lstat(real);
  if (!found.isFile()) throw new Error(`${path} is not a file. INDEX.md lists what can be read.`);
  return real;
}
