/**
 * Owns: a small archive of regular files, in memory. A large one is written to a file (tar-file.ts). Reading archives is the sandbox's business.
 */
import { endOfArchive, entryHeader, padding } from './tar-header.ts';

const FILE_MODE = 0o444;

export interface TarFile {
  /** Relative, with slashes. */
  readonly path: string;
  readonly content: string;
}

/** The same files give the same bytes: owner, group and times are zero. */
export function tar(files: readonly TarFile[]): Buffer {
  const blocks = files.flatMap(({ path, content }) => {
    const body = Buffer.from(content, 'utf8');
    return [entryHeader({ path, type: 'file', bytes: body.length, mode: FILE_MODE }), body, padding(body.length)];
  });
  return Buffer.concat([...blocks, endOfArchive()]);
}
