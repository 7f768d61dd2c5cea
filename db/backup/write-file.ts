/**
 * Owns: writing a backup's file: it appears whole or not at all. Does not own: what it is made of (format.ts), where rows come from.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { BackupError } from './errors.ts';
import { BACKUP_FORMAT, type BackupEnd, type BackupHeader, type Row } from './format.ts';

/** What is written: the header, then rows table by table in its order, then the numbers. */
export interface BackupSource {
  readonly header: BackupHeader;
  /** Batches of rows of one table. */
  rows(table: string): AsyncIterable<readonly Row[]>;
  numbers(): Promise<BackupEnd['numbers']>;
}

export interface Written {
  readonly rows: BackupEnd['rows'];
  /** Of the file. */
  readonly bytes: number;
}

/**
 * Writes `file`, which only its owner may read.
 * @throws BackupError when there is a file of that name, or it cannot be written.
 */
export async function writeBackup(file: string, source: BackupSource): Promise<Written> {
  if (existsSync(file)) throw exists(file);
  const draft = path.join(path.dirname(file), `.${path.basename(file)}.${randomUUID().slice(0, 8)}`);
  try {
    const written = await sendBackup(createWriteStream(draft, { flags: 'wx', mode: 0o600 }), source);
    await toDisk(draft);
    appear(draft, file);
    await toDisk(path.dirname(file));
    return { ...written, bytes: statSync(file).size };
  } catch (error) {
    rmSync(draft, { force: true });
    throw cannotWrite(file, error);
  }
}

/**
 * Writes to a stream. Whoever gets less than all of it notices when it is read.
 * @throws BackupError when the stream takes no more; what `source` throws passes unchanged.
 */
export async function sendBackup(target: Writable, source: BackupSource): Promise<Written> {
  const rows: Record<string, number> = {};
  const gzip = createGzip();
  let bytes = 0;
  gzip.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  // When one end fails the other is torn down, with the same error: the first to see it had it.
  let failed: 'source' | 'target' | undefined;
  target.once('error', () => {
    failed ??= 'target';
  });
  const lines = async function* () {
    try {
      yield* linesOf(source, rows);
    } catch (error) {
      failed ??= 'source';
      throw error;
    }
  };
  try {
    await pipeline(Readable.from(lines()), gzip, target);
  } catch (error) {
    if (failed !== 'target') throw error;
    throw new BackupError(`The backup cannot be written (${(error as NodeJS.ErrnoException).code}). Choose another place.`);
  }
  return { rows, bytes };
}

async function* linesOf({ header, ...source }: BackupSource, rows: Record<string, number>): AsyncGenerator<string> {
  const hash = createHash('sha256');
  const hashed = (text: string): string => {
    hash.update(text);
    return text;
  };
  yield hashed(`${JSON.stringify({ heph: 'backup', format: BACKUP_FORMAT, ...header })}\n`);
  for (const { name } of header.tables) {
    rows[name] = 0;
    yield hashed(`${JSON.stringify({ table: name })}\n`);
    for await (const batch of source.rows(name)) {
      rows[name] += batch.length;
      yield hashed(batch.map((row) => `${JSON.stringify(row)}\n`).join(''));
    }
  }
  const numbers = await source.numbers();
  yield `${JSON.stringify({ end: { rows, numbers, sha256: hash.digest('hex') } })}\n`;
}

/** Gives the file its name, never that of another file. */
function appear(draft: string, file: string): void {
  try {
    linkSync(draft, file);
    rmSync(draft);
  } catch (error) {
    // Some file systems have no links.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' || existsSync(file)) throw exists(file);
    renameSync(draft, file);
  }
}

async function toDisk(file: string): Promise<void> {
  const handle = await open(file, 'r');
  await handle.sync().finally(() => handle.close());
}

const exists = (file: string) => new BackupError(`${file} exists already. Nothing was written; choose another name.`);

function cannotWrite(file: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof BackupError || !['link', 'rename', 'fsync', 'open'].includes(syscall ?? '')) return error;
  return new BackupError(`${file} cannot be written (${code}). Choose another place.`);
}
