/**
 * Owns: the headers of the archives that we write: ustar (POSIX.1-1988), with a pax header (POSIX.1-2001) before an entry whose path does not
 * fit. Regular files and directories only: nothing that we send is a link. Owner and group are zero, so the same tree gives the same bytes.
 */

export const TAR_BLOCK = 512;
const NAME_MAX_BYTES = 100;
const PREFIX_MAX_BYTES = 155;
/** Eleven octal digits. */
export const ENTRY_MAX_BYTES = 8 ** 11 - 1;

export interface TarEntry {
  /** Relative, with slashes, without one at its end. */
  readonly path: string;
  readonly type: 'file' | 'directory';
  /** Of the content; 0 for a directory. */
  readonly bytes: number;
  /** Permissions, for example 0o444. */
  readonly mode: number;
  /** Seconds since the Unix epoch. */
  readonly mtimeS?: number;
}

/** Everything before the content of an entry. Throws RangeError for an entry that is too large for the format. */
export function entryHeader(entry: TarEntry): Buffer {
  if (entry.bytes > ENTRY_MAX_BYTES) throw new RangeError(`an entry has more than ${ENTRY_MAX_BYTES} bytes`);
  const path = Buffer.from(entry.type === 'directory' ? `${entry.path}/` : entry.path, 'utf8');
  const split = splitPath(path);
  if (split) return block(entry, split);
  const record = paxRecord(`path=${path.toString('utf8')}`);
  const pax = { ...entry, bytes: record.length };
  const name = path.subarray(0, NAME_MAX_BYTES);
  return Buffer.concat([
    block(pax, { prefix: Buffer.alloc(0), name: Buffer.from('pax-header') }, 'x'),
    record,
    padding(record.length),
    block(entry, { prefix: Buffer.alloc(0), name }),
  ]);
}

/** What fills the last block of a content. */
export function padding(bytes: number): Buffer {
  return Buffer.alloc((TAR_BLOCK - (bytes % TAR_BLOCK)) % TAR_BLOCK);
}

/** The end of an archive. */
export function endOfArchive(): Buffer {
  return Buffer.alloc(TAR_BLOCK * 2);
}

interface SplitPath {
  readonly prefix: Buffer;
  readonly name: Buffer;
}

/** At a slash, so that both parts fit; null when there is no such slash. */
function splitPath(path: Buffer): SplitPath | null {
  if (path.length <= NAME_MAX_BYTES) return { prefix: Buffer.alloc(0), name: path };
  const slash = path.indexOf('/', path.length - NAME_MAX_BYTES - 1);
  if (slash <= 0 || slash > PREFIX_MAX_BYTES || slash === path.length - 1) return null;
  return { prefix: path.subarray(0, slash), name: path.subarray(slash + 1) };
}

/** `<length> key=value\n`, where the length counts itself. */
function paxRecord(pair: string): Buffer {
  const bytes = Buffer.byteLength(pair) + 2; // the space and the line end
  let digits = String(bytes).length;
  while (String(bytes + digits).length !== digits) digits++;
  return Buffer.from(`${bytes + digits} ${pair}\n`, 'utf8');
}

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, '0')}\0`;
}

function block({ type, bytes, mode, mtimeS = 0 }: TarEntry, { prefix, name }: SplitPath, kind?: 'x'): Buffer {
  const header = Buffer.alloc(TAR_BLOCK);
  name.copy(header, 0);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(bytes, 11), 124);
  header.write(octal(Math.max(0, mtimeS), 11), 136);
  header.write('        ', 148);
  header.write(kind ?? (type === 'directory' ? '5' : '0'), 156);
  header.write('ustar\x0000', 257, 'latin1');
  prefix.copy(header, 345);
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}
