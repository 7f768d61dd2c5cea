/**
 * Owns: small questions to the disk. What vanishes while it is looked at counts as absent: git renames and removes files as it works.
 */
import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';

/** Bytes of all files below a folder; 0 when it is not there. Links are not followed. */
export async function folderBytes(dir: string): Promise<number> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => []);
  const sizes = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        lstat(path.join(entry.parentPath, entry.name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Paths of the files below a folder whose name matches. */
export async function filesNamed(dir: string, name: RegExp): Promise<readonly string[]> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile() && name.test(entry.name)).map((entry) => path.join(entry.parentPath, entry.name));
}
