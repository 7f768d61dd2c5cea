/**
 * Owns: reading a tar archive that somebody else made: regular files and directories of the ustar format, nothing else. Pure.
 * Does not own: writing anything (context-folder.ts). A whole archive is accepted or refused, before a byte of it is used.
 * Limits: files, bytes and path length (config.ts).
 */
import { RUNNER } from './config.ts';

const BLOCK = 512;

export interface TarFile {
  /** Relative, forward slashes, no `.` or `..`. */
  readonly path: string;
  readonly data: Buffer;
}

export interface TarContents {
  readonly directories: readonly string[];
  readonly files: readonly TarFile[];
}

/** Why an archive is refused. The message names a kind of problem, never a path of the archive. */
export class TarRefused extends Error {
  override readonly name = 'TarRefused';
}

/** Reads a whole archive. Throws TarRefused; an empty archive is one without files. */
export function readTar(archive: Buffer): TarContents {
  const files: TarFile[] = [];
  const directories = new Set<string>();
  const seen = new Set<string>();
  let bytes = 0;
  for (let at = 0; at < archive.length; ) {
    const header = readHeader(archive, at);
    if (header === null) break;
    at += BLOCK;
    if (seen.has(header.path)) throw new TarRefused('the same path twice');
    seen.add(header.path);
    if (header.isDirectory) {
      directories.add(header.path);
      continue;
    }
    bytes += header.size;
    if (bytes > RUNNER.folderMaxBytes) throw new TarRefused('too many bytes');
    if (at + header.size > archive.length) throw new TarRefused('cut off');
    files.push({ path: header.path, data: archive.subarray(at, at + header.size) });
    at += Math.ceil(header.size / BLOCK) * BLOCK;
    if (seen.size > RUNNER.folderMaxFiles) throw new TarRefused('too many files');
  }
  if (seen.size > RUNNER.folderMaxFiles) throw new TarRefused('too many files');
  addParents(files, directories);
  return { directories: [...directories].sort(), files };
}

interface Header {
  readonly path: string;
  readonly size: number;
  readonly isDirectory: boolean;
}

/** The header at `at`; null for the block of zeros that ends an archive. */
function readHeader(archive: Buffer, at: number): Header | null {
  const block = archive.subarray(at, at + BLOCK);
  if (block.length < BLOCK) throw new TarRefused('cut off');
  if (block.every((byte) => byte === 0)) return null;
  if (checksum(block) !== readOctal(block.subarray(148, 156))) throw new TarRefused('a broken header');
  const type = String.fromCharCode(block[156] ?? 0);
  if (type !== '0' && type !== '\0' && type !== '5') throw new TarRefused('a link, a device or another special entry');
  const prefix = block.toString('latin1', 257, 262) === 'ustar' ? readText(block.subarray(345, 500)) : '';
  const name = readText(block.subarray(0, 100));
  const isDirectory = type === '5';
  return {
    path: checkPath(prefix === '' ? name : `${prefix}/${name}`, isDirectory),
    size: readOctal(block.subarray(124, 136)),
    isDirectory,
  };
}

/** The sum of a header's bytes, with its own field read as blanks. */
function checksum(block: Buffer): number {
  return block.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 32 : byte), 0);
}

function readOctal(field: Buffer): number {
  const digits = /^ *([0-7]+)[ \0]*$/.exec(field.toString('latin1'))?.[1];
  if (digits === undefined) throw new TarRefused('a broken header');
  return Number.parseInt(digits, 8);
}

function readText(field: Buffer): string {
  const end = field.indexOf(0);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(end < 0 ? field : field.subarray(0, end));
  } catch {
    throw new TarRefused('a path that is not UTF-8');
  }
}

function checkPath(raw: string, isDirectory: boolean): string {
  const path = isDirectory ? raw.replace(/\/+$/, '') : raw;
  if (path.length > RUNNER.pathMaxChars) throw new TarRefused('a path that is too long');
  if (/[\p{Cc}\\]/u.test(path)) throw new TarRefused('a path with a control character or a backslash');
  // An absolute path starts with an empty segment.
  if (path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..'))
    throw new TarRefused('a path that leads elsewhere');
  return path;
}

/** Every folder that a file needs, and no file where a folder must be. */
function addParents(files: readonly TarFile[], directories: Set<string>): void {
  for (const path of [...directories, ...files.map((file) => file.path)]) {
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) directories.add(path.slice(0, slash));
  }
  if (files.some((file) => directories.has(file.path))) throw new TarRefused('a file where a folder must be');
}
