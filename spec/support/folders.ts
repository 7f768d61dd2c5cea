/** Owns: small trees of files in temporary folders, for specs of the tools. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Path in the folder -> text. */
export type Files = Record<string, string>;

const folders: string[] = [];

/** A new temporary folder with files in it; `removeFolders` takes all of them away. */
export function newFolder(files: Files): string {
  const root = mkdtempSync(join(tmpdir(), 'heph-gate-'));
  folders.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** Removes each folder that `newFolder` made in this process. */
export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}
