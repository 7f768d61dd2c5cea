/**
 * Owns: files of one folder in memory, compressed once per encoding. A path that is not a plain name inside the folder finds nothing.
 */
import { createHash } from 'node:crypto';
import { lstat, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import zlib from 'node:zlib';

export type Encoding = 'br' | 'gzip' | 'identity';

interface Encoded {
  readonly bytes: Buffer;
  readonly etag: string;
}

export interface StaticFile {
  readonly type: string;
  /** What the file is offered in, best first. */
  readonly encodings: readonly Encoding[];
  encoded(encoding: Encoding): Promise<Encoded>;
}

interface Cached {
  readonly file: StaticFile;
  readonly stamp: string;
}

/** Names of letters, digits and `. _ -`, none of which begins with a dot. */
const PLAIN_PATH = /^(?:\/(?!\.)[A-Za-z0-9._-]+)+$/;
const FILES_MAX = 1_000;
const FILE_MAX_BYTES = 16 * 1024 * 1024;
const COMPRESS_MIN_BYTES = 1_024;
const BROTLI_QUALITY = 9;

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

const brotli = promisify(zlib.brotliCompress);
const gzip = promisify(zlib.gzip);

export class StaticFiles {
  readonly #folder: string;
  readonly #files = new Map<string, Cached>();

  constructor(folder: string) {
    this.#folder = path.resolve(folder);
  }

  /** The file at this URL path, or null. A file that changed on disk is read again. */
  async find(urlPath: string): Promise<StaticFile | null> {
    if (!PLAIN_PATH.test(urlPath)) return null;
    const onDisk = path.join(this.#folder, urlPath);
    const stat = await lstat(onDisk).catch(() => null);
    if (!stat?.isFile() || stat.size > FILE_MAX_BYTES) return null;
    const stamp = `${stat.mtimeMs} ${stat.size}`;
    const cached = this.#files.get(urlPath);
    if (cached?.stamp === stamp) return cached.file;
    const file = toFile(await readFile(onDisk), path.extname(urlPath));
    if (this.#files.size >= FILES_MAX) this.#files.clear();
    this.#files.set(urlPath, { file, stamp });
    return file;
  }
}

function toFile(bytes: Buffer, extension: string): StaticFile {
  const type = TYPES[extension] ?? 'application/octet-stream';
  const compressible = /charset/.test(type) && bytes.length >= COMPRESS_MIN_BYTES;
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
  const done = new Map<string, Promise<Encoded>>();
  const encode = async (encoding: string): Promise<Encoded> => ({ bytes: await compress(bytes, encoding), etag: `"${hash}-${encoding}"` });
  return {
    type,
    encodings: compressible ? ['br', 'gzip', 'identity'] : ['identity'],
    encoded(encoding) {
      const known = done.get(encoding) ?? encode(encoding);
      done.set(encoding, known);
      return known;
    },
  };
}

async function compress(bytes: Buffer, encoding: string): Promise<Buffer> {
  if (encoding === 'br') return brotli(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } });
  return encoding === 'gzip' ? gzip(bytes) : bytes;
}
