/**
 * Owns: bringing a repository into the context folder: the archive is received whole into a file that nobody can open, checked against
 * what was declared, and every entry of it judged, before anything of it can be seen; then it is extracted and takes its place at once.
 * Does not own: what may be loaded and how often (the server), and what the model is told (tools/load-context.ts).
 * The tree is read-only. An earlier load of the same folder is replaced; when a load fails, what was there stays.
 */
import { createHash } from 'node:crypto';
import { chmod, type FileHandle, lstat, mkdir, open, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LoadManifest } from '../src/contract/agent.ts';
import { uuidv7 } from '../src/kernel/ids.ts';
import { RUNNER } from './config.ts';
import { type ContextFolder, makeFolder, removeTree } from './context-folder.ts';
import type { OpenLoad } from './gateway-client.ts';
import { checkTarPath, TarRefused } from './tar-header.ts';
import { type IndexedFile, indexTar, type TarIndex } from './tar-index.ts';

const FILE_MODE = 0o444;
const PROGRAM_MODE = 0o555;
const FOLDER_MODE = 0o555;

/** Extracts the archive and returns where it lies on this machine. Throws TarRefused when the archive is not what it should be. */
export async function stageLoad(folder: ContextFolder, load: Pick<OpenLoad, 'manifest' | 'archive'>, signal: AbortSignal): Promise<string> {
  const { manifest } = load;
  const directory = checkTarPath(manifest.directory, true);
  if (folder.fixed.some((path) => isInside(path, directory) || isInside(directory, path)))
    throw new TarRefused('a place where a document of the turn is');
  const archive = await openNameless(folder.localDir);
  try {
    await receive(load.archive, manifest, archive);
    const index = await indexTar(archive, manifest.bytes);
    return await place(folder.localDir, directory, (target) => extract(archive, index, { target, signal }));
  } finally {
    await archive.close();
  }
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** A file without a name: no command can open it, and it is gone with this process, however that ends. */
async function openNameless(localDir: string): Promise<FileHandle> {
  const path = join(localDir, `.${uuidv7()}`);
  const handle = await open(path, 'wx+', 0o600);
  await unlink(path);
  return handle;
}

/** Writes what arrives, and no more than was declared. */
async function receive(chunks: AsyncIterable<Buffer>, manifest: LoadManifest, archive: FileHandle): Promise<void> {
  if (manifest.bytes > RUNNER.loadMaxBytes) throw new TarRefused('too many bytes');
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > manifest.bytes) throw new TarRefused('more bytes than it declares');
    hash.update(chunk);
    await archive.appendFile(chunk);
  }
  if (bytes < manifest.bytes) throw new TarRefused('fewer bytes than it declares');
  if (hash.digest('hex') !== manifest.sha256) throw new TarRefused('another checksum than it declares');
}

/** Fills a hidden folder beside the place, then puts it there in one step. */
async function place(localDir: string, directory: string, fill: (target: string) => Promise<void>): Promise<string> {
  const parent = await makeFolder(localDir, dirname(directory));
  const [target, old] = [join(parent, `.${uuidv7()}`), join(parent, `.${uuidv7()}`)];
  const final = join(localDir, directory);
  try {
    await mkdir(target);
    await fill(target);
    if ((await lstat(final).catch(() => null)) !== null) await rename(final, old);
    await rename(target, final);
  } finally {
    await Promise.all([target, old].map(removeTree));
  }
  return final;
}

async function extract(archive: FileHandle, index: TarIndex, to: { readonly target: string; readonly signal: AbortSignal }): Promise<void> {
  const { target, signal } = to;
  for (const directory of index.directories) await mkdir(join(target, directory));
  const files = index.files.values();
  const write = async (): Promise<void> => {
    for (const file of files) {
      signal.throwIfAborted();
      await copyFile(archive, file, join(target, file.path));
    }
  };
  await Promise.all(Array.from({ length: RUNNER.loadWriters }, write));
  // Deepest first: a folder that is closed takes no further change.
  for (const directory of [...index.directories].reverse()) await chmod(join(target, directory), FOLDER_MODE);
  await chmod(target, FOLDER_MODE);
}

async function copyFile(archive: FileHandle, file: IndexedFile, path: string): Promise<void> {
  const handle = await open(path, 'wx', file.executable ? PROGRAM_MODE : FILE_MODE);
  try {
    const piece = Buffer.allocUnsafe(Math.min(file.size, RUNNER.copyChunkBytes));
    for (let done = 0; done < file.size; ) {
      const { bytesRead } = await archive.read(piece, 0, Math.min(piece.length, file.size - done), file.at + done);
      if (bytesRead === 0) throw new TarRefused('cut off');
      await handle.appendFile(piece.subarray(0, bytesRead));
      done += bytesRead;
    }
  } finally {
    await handle.close();
  }
}
