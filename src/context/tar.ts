/**
 * Owns: writing a small ustar archive of regular files, in memory. Reading archives is the sandbox's business.
 */

const BLOCK = 512;
const NAME_MAX_BYTES = 100;

export interface TarFile {
  /** Relative, with slashes, at most 100 bytes of UTF-8. */
  readonly path: string;
  readonly content: string;
}

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, '0')}\0`;
}

function header(path: string, sizeBytes: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const name = Buffer.from(path, 'utf8');
  if (name.length > NAME_MAX_BYTES) throw new RangeError(`the path of a document has more than ${NAME_MAX_BYTES} bytes`);
  name.copy(block, 0);
  block.write(octal(0o444, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(sizeBytes, 11), 124);
  block.write(octal(0, 11), 136);
  block.write('        ', 148);
  block.write('0', 156);
  block.write('ustar\x0000', 257, 'latin1');
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** The same files give the same bytes: owner, group and times are zero. */
export function tar(files: readonly TarFile[]): Buffer {
  const blocks = files.flatMap(({ path, content }) => {
    const body = Buffer.from(content, 'utf8');
    return [header(path, body.length), body, Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(BLOCK * 2)]);
}
