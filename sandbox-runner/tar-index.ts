/**
 * Owns: what a large tar archive in a file holds, found by reading its headers only, so that the whole of it is accepted or refused before
 * a byte of it is written anywhere. Long paths as GNU and POSIX (pax) archives write them are understood; what could redirect a later
 * entry, make it another size, or be anything but a file or a folder is refused.
 * Does not own: extracting (load.ts). Memory grows with the number of files, never with their size.
 */
import type { FileHandle } from 'node:fs/promises';
import { RUNNER } from './config.ts';
import { checkTarPath, foldersFor, paddedSize, readTarHeader, readText, TAR_BLOCK, type TarHeader, TarRefused } from './tar-header.ts';

export interface IndexedFile {
  readonly path: string;
  readonly size: number;
  /** Where its data begins in the archive. */
  readonly at: number;
  readonly executable: boolean;
}

export interface TarIndex {
  /** Parents first. */
  readonly directories: readonly string[];
  readonly files: readonly IndexedFile[];
}

/** Reads `bytes` of the archive. Throws TarRefused. */
export async function indexTar(archive: FileHandle, bytes: number): Promise<TarIndex> {
  const reader = new ArchiveReader(archive, bytes);
  const files: IndexedFile[] = [];
  const directories = new Set<string>();
  const seen = new Set<string>();
  let longName: string | null = null;
  for (let at = 0; at < bytes; ) {
    const header = readTarHeader(await reader.read(at, TAR_BLOCK));
    if (header === null) break;
    const data = at + TAR_BLOCK;
    at = data + paddedSize(header.size);
    if (data + header.size > bytes) throw new TarRefused('cut off');
    if (isExtension(header)) {
      longName = nameIn(header, await reader.read(data, header.size)) ?? longName;
      continue;
    }
    if (header.type !== '0' && header.type !== '5') throw new TarRefused('a link, a device or another special entry');
    const path = pathOf(longName ?? header.name, header.type === '5');
    longName = null;
    if (path === null) continue;
    if (seen.has(path)) throw new TarRefused('the same path twice');
    seen.add(path);
    if (seen.size > RUNNER.loadMaxFiles) throw new TarRefused('too many files');
    if (header.type === '5') directories.add(path);
    else files.push({ path, size: header.size, at: data, executable: (header.mode & 0o100) !== 0 });
  }
  return { directories: foldersFor(files, directories), files };
}

/** The path of an entry; null for the archive's own root, which some packers list as `./`. */
function pathOf(name: string, isDirectory: boolean): string | null {
  const path = name.replace(/^\.\//, '');
  return isDirectory && (path === '' || path === '.') ? null : checkTarPath(path, isDirectory);
}

/** Entries that say something about the next one (`L`, `x`) or about all (`g`). */
function isExtension(header: TarHeader): boolean {
  const isKnown = header.type === 'L' || header.type === 'x' || header.type === 'g';
  if (isKnown && header.size > RUNNER.tarExtensionMaxBytes) throw new TarRefused('an extended header that is too long');
  return isKnown;
}

/** The path that an extension gives to the next entry, or null. */
function nameIn(header: TarHeader, data: Buffer): string | null {
  if (header.type === 'L') return readText(data);
  const records = readPax(data);
  const isHarmless = [...records.keys()].every((key) => HARMLESS.has(key) || (key === 'path' && header.type === 'x'));
  if (!isHarmless) throw new TarRefused('an extended header that changes more than a path');
  return records.get('path') ?? null;
}

/** Records of POSIX that an extraction may leave out. */
const HARMLESS = new Set(['comment', 'mtime', 'atime', 'ctime', 'uid', 'gid', 'uname', 'gname', 'charset', 'hdrcharset']);

/** `<length> <key>=<value>\n`, again and again; the length counts the whole record in bytes. */
function readPax(data: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(' ', at);
    const length = space < 0 ? Number.NaN : Number(data.toString('latin1', at, space));
    const record = data.subarray(space + 1, at + length - 1);
    const equals = record.indexOf('=');
    if (!Number.isInteger(length) || at + length > data.length || length <= space + 1 - at || equals < 0)
      throw new TarRefused('a broken extended header');
    records.set(record.toString('latin1', 0, equals), readText(record.subarray(equals + 1)));
    at += length;
  }
  return records;
}

/** Reads an archive in larger pieces than its blocks: most files of a repository are small. */
class ArchiveReader {
  readonly #archive: FileHandle;
  readonly #bytes: number;
  #piece = Buffer.alloc(0);
  #pieceAt = 0;

  constructor(archive: FileHandle, bytes: number) {
    this.#archive = archive;
    this.#bytes = bytes;
  }

  /** `length` bytes from `at`, or fewer at the end of the archive. */
  async read(at: number, length: number): Promise<Buffer> {
    const end = Math.min(at + length, this.#bytes);
    if (at < this.#pieceAt || end > this.#pieceAt + this.#piece.length) {
      const piece = Buffer.alloc(Math.min(Math.max(length, RUNNER.copyChunkBytes), this.#bytes - at));
      const { bytesRead } = await this.#archive.read(piece, 0, piece.length, at);
      this.#piece = piece.subarray(0, bytesRead);
      this.#pieceAt = at;
    }
    return this.#piece.subarray(at - this.#pieceAt, end - this.#pieceAt);
  }
}
