/**
 * Owns: reading a small tar archive in memory: regular files and directories of the ustar format, nothing else. Pure.
 * Does not own: writing anything (context-folder.ts). A whole archive is accepted or refused, before a byte of it is used.
 * Limits: files, bytes and path length (config.ts).
 */
import { RUNNER } from './config.ts';
import { checkTarPath, foldersFor, paddedSize, readTarHeader, TAR_BLOCK, TarRefused } from './tar-header.ts';

export interface TarFile {
  /** Relative, forward slashes, no `.` or `..`. */
  readonly path: string;
  readonly data: Buffer;
}

export interface TarContents {
  /** Parents first. */
  readonly directories: readonly string[];
  readonly files: readonly TarFile[];
}

/** Reads a whole archive. Throws TarRefused; an empty archive is one without files. */
export function readTar(archive: Buffer): TarContents {
  const files: TarFile[] = [];
  const directories = new Set<string>();
  const seen = new Set<string>();
  let bytes = 0;
  for (let at = 0; at < archive.length; ) {
    const header = readTarHeader(archive.subarray(at, at + TAR_BLOCK));
    if (header === null) break;
    at += TAR_BLOCK;
    const { type, size } = header;
    if (type !== '0' && type !== '5') throw new TarRefused('a link, a device or another special entry');
    const path = checkTarPath(header.name, type === '5');
    if (seen.has(path)) throw new TarRefused('the same path twice');
    seen.add(path);
    if (seen.size > RUNNER.folderMaxFiles) throw new TarRefused('too many files');
    if (type === '5') {
      directories.add(path);
      continue;
    }
    bytes += size;
    if (bytes > RUNNER.folderMaxBytes) throw new TarRefused('too many bytes');
    if (at + size > archive.length) throw new TarRefused('cut off');
    files.push({ path, data: archive.subarray(at, at + size) });
    at += paddedSize(size);
  }
  return { directories: foldersFor(files, directories), files };
}
