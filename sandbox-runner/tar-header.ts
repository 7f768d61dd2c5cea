/**
 * Owns: one header of a tar archive that somebody else made, and which paths are acceptable in one. Pure.
 * Does not own: whole archives: small ones in memory (tar.ts), large ones in a file (tar-index.ts).
 */
import { RUNNER } from './config.ts';

export const TAR_BLOCK = 512;

/** Why an archive is refused. The message names a kind of problem, never a path of the archive. */
export class TarRefused extends Error {
  override readonly name = 'TarRefused';
}

export interface TarHeader {
  /** As it stands in the header: to be checked before it is used. */
  readonly name: string;
  readonly size: number;
  readonly mode: number;
  /** `0` a file, `5` a folder; anything else is special. */
  readonly type: string;
}

/** Reads one block; null for the block of zeros that ends an archive. Throws TarRefused. */
export function readTarHeader(block: Buffer): TarHeader | null {
  if (block.length < TAR_BLOCK) throw new TarRefused('cut off');
  if (block.every((byte) => byte === 0)) return null;
  if (checksum(block) !== readOctal(block.subarray(148, 156))) throw new TarRefused('a broken header');
  const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? readText(block.subarray(345, 500)) : '';
  const name = readText(block.subarray(0, 100));
  const type = String.fromCharCode(block[156] ?? 0);
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    size: readOctal(block.subarray(124, 136)),
    mode: readOctal(block.subarray(100, 108)),
    type: type === '\0' ? '0' : type,
  };
}

/** How many bytes of the archive an entry's data takes. */
export function paddedSize(size: number): number {
  return Math.ceil(size / TAR_BLOCK) * TAR_BLOCK;
}

/** The path as it may be used: relative, forward slashes, no `.` or `..`. Throws TarRefused. */
export function checkTarPath(raw: string, isDirectory: boolean): string {
  const path = isDirectory ? raw.replace(/\/+$/, '') : raw;
  if (path.length > RUNNER.pathMaxChars) throw new TarRefused('a path that is too long');
  if (/[\p{Cc}\\]/u.test(path)) throw new TarRefused('a path with a control character or a backslash');
  // An absolute path starts with an empty segment.
  const segments = path.split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..'))
    throw new TarRefused('a path that leads elsewhere');
  if (segments.length > RUNNER.pathMaxSegments) throw new TarRefused('a path that is too deep');
  return path;
}

/** Every folder that the paths need, parents first. Throws TarRefused when a file stands where a folder must be. */
export function foldersFor(files: readonly { readonly path: string }[], directories: Iterable<string>): string[] {
  const folders = new Set(directories);
  for (const path of [...folders, ...files.map((file) => file.path)]) {
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) folders.add(path.slice(0, slash));
  }
  if (files.some((file) => folders.has(file.path))) throw new TarRefused('a file where a folder must be');
  return [...folders].sort();
}

/** UTF-8 up to the first NUL. Throws TarRefused for anything else. */
export function readText(field: Buffer): string {
  const end = field.indexOf(0);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(end < 0 ? field : field.subarray(0, end));
  } catch {
    throw new TarRefused('a path that is not UTF-8');
  }
}

/** The sum of a header's bytes, with its own field read as blanks. */
function checksum(block: Buffer): number {
  let sum = 8 * 32;
  for (let index = 0; index < TAR_BLOCK; index++) if (index < 148 || index >= 156) sum += block[index] ?? 0;
  return sum;
}

/** Octal digits only: sizes in base 256 are for files that no archive of ours has. */
function readOctal(field: Buffer): number {
  const digits = /^ *([0-7]+)[ \0]*$/.exec(field.toString('latin1'))?.[1];
  if (digits === undefined) throw new TarRefused('a broken header');
  return Number.parseInt(digits, 8);
}
