/**
 * Owns: writing a large archive to a file, with its size and SHA-256, in bounded memory.
 * Rule: the bytes written never exceed `maxBytes`; an entry's content has exactly the length that its header says.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { endOfArchive, entryHeader, padding, TAR_BLOCK, type TarEntry } from './tar-header.ts';

const BUFFER_BYTES = 1024 * 1024;

/** The archive would be larger than it may be. */
export class ArchiveTooLarge extends Error {
  override readonly name = 'ArchiveTooLarge';
}

/** What an entry takes in an archive, when its path fits into a plain header. */
export function entryBytes(contentBytes: number): number {
  return TAR_BLOCK + contentBytes + padding(contentBytes).length;
}

export class TarFileWriter {
  readonly #file: FileHandle;
  readonly #maxBytes: number;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;

  private constructor(file: FileHandle, maxBytes: number) {
    this.#file = file;
    this.#maxBytes = maxBytes;
  }

  /** Creates the file; it must not exist. `close` it, whatever happens. */
  static async create(path: string, maxBytes: number): Promise<TarFileWriter> {
    return new TarFileWriter(await open(path, 'wx', 0o600), maxBytes);
  }

  async directory(entry: Omit<TarEntry, 'type' | 'bytes'>): Promise<void> {
    await this.#write(entryHeader({ ...entry, type: 'directory', bytes: 0 }));
  }

  /** Throws RangeError when `content` is not `entry.bytes` long, ArchiveTooLarge when it does not fit. */
  async file(entry: Omit<TarEntry, 'type'>, content: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
    await this.#write(entryHeader({ ...entry, type: 'file' }));
    let written = 0;
    for await (const chunk of content) {
      written += chunk.length;
      await this.#write(chunk);
    }
    if (written !== entry.bytes) throw new RangeError('the content of an entry has another length than its header');
    await this.#write(padding(written));
  }

  /** Ends the archive. */
  async finish(): Promise<{ readonly bytes: number; readonly sha256: string }> {
    await this.#write(endOfArchive());
    await this.#flush();
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #write(chunk: Buffer): Promise<void> {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) throw new ArchiveTooLarge('the archive is too large');
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= BUFFER_BYTES) await this.#flush();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#hash.update(bytes);
    for (let at = 0; at < bytes.length; ) at += (await this.#file.write(bytes, at)).bytesWritten;
  }
}
