/**
 * Owns: reading a commit's tree and the contents of its files from git's output. Nothing is written to disk by name: a path of a repository
 * that somebody else made is only ever a name inside an archive.
 */
import type { Readable } from 'node:stream';
import { isFolderPath } from '../../folder-path.ts';

export interface TreeFile {
  readonly path: string;
  readonly object: string;
  readonly bytes: number;
  readonly executable: boolean;
}

export interface Tree {
  readonly files: readonly TreeFile[];
  /** Submodules: empty folders, as git leaves them without their repository. */
  readonly submodules: readonly string[];
  /** Files whose name no archive of ours may hold: a control character, a backslash, not UTF-8, too long. */
  readonly omitted: number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads `git ls-tree -r -z -l`. A symbolic link becomes a regular file that holds its target: a checkout without links (core.symlinks=false).
 * `pathMaxBytes` bounds a path in the archive.
 */
export function readTree(listing: Buffer, pathMaxBytes: number): Tree {
  const files: TreeFile[] = [];
  const submodules: string[] = [];
  let omitted = 0;
  for (let at = 0; at < listing.length; ) {
    const end = listing.indexOf(0, at);
    const tab = listing.indexOf(0x09, at);
    const [mode = '', type, object = '', size] = listing.toString('latin1', at, tab).split(/ +/);
    const path = usablePath(listing.subarray(tab + 1, end), pathMaxBytes);
    at = end + 1;
    if (path === null) omitted++;
    else if (type === 'blob') files.push({ path, object, bytes: Number(size), executable: mode === '100755' });
    else submodules.push(path);
  }
  return { files, submodules, omitted };
}

function usablePath(bytes: Buffer, maxBytes: number): string | null {
  try {
    const path = utf8.decode(bytes);
    return bytes.length <= maxBytes && isFolderPath(path) ? path : null;
  } catch {
    return null;
  }
}

/** Reads `git cat-file --batch`: for each object a line with its size, its bytes, a line end. Memory is one chunk. */
export class BatchReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stdout: Readable) {
    this.#chunks = stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** The content of the next object. Read it to its end before the next call. Throws when git says something else. */
  async *next({ object, bytes }: TreeFile): AsyncGenerator<Buffer> {
    const line = await this.#line();
    if (line !== `${object} blob ${bytes}`) throw new Error('git gave another object than it was asked for');
    for (let left = bytes; left > 0; ) {
      if (this.#rest.length === 0) await this.#more();
      const chunk = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(chunk.length);
      left -= chunk.length;
      yield chunk;
    }
    if (this.#rest.length === 0) await this.#more();
    this.#rest = this.#rest.subarray(1);
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf(0x0a);
      if (end >= 0) {
        const line = this.#rest.toString('latin1', 0, end);
        this.#rest = this.#rest.subarray(end + 1);
        return line;
      }
      const before = this.#rest;
      await this.#more();
      this.#rest = Buffer.concat([before, this.#rest]);
    }
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#chunks.next();
    if (done) throw new Error('git ended before it gave every object');
    this.#rest = value;
  }
}
