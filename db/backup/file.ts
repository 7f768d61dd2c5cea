/**
 * Owns: the file of a backup. It is gzip of lines of JSON, so that `zcat FILE | head -1` says what it is:
 *   the header; for each table a line with its name and one line per row, its values as PostgreSQL writes them; at last the counts, the
 *   numbers of the identities and the SHA-256 of all lines before. Without that last line a file is no backup.
 * A file appears whole or not at all. Does not own: where rows come from and go to.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { z } from 'zod';
import { BackupError } from './errors.ts';

/** Raised when an older Heph could not read the file any more. */
export const BACKUP_FORMAT = 1;

/** Far more than a row can hold; a line that has no end is none of ours. */
const LINE_MAX_BYTES = 512 * 1024 * 1024;
const NEWLINE = 10;

const marked = z.object({ heph: z.literal('backup'), format: z.number() });
const headerSchema = marked.extend({
  /** Which Heph wrote it. */
  version: z.string(),
  /** The newest migration of the rows. */
  migration: z.string(),
  postgres: z.string(),
  takenAt: z.string(),
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()) })),
});
const tableSchema = z.object({ table: z.string() });
const rowSchema = z.array(z.string().nullable());
const endSchema = z.object({
  end: z.object({ rows: z.record(z.string(), z.number()), numbers: z.record(z.string(), z.string().nullable()), sha256: z.string() }),
});

export type BackupHeader = Omit<z.infer<typeof headerSchema>, 'heph' | 'format'>;
export type Row = readonly (string | null)[];
export type BackupEnd = Omit<z.infer<typeof endSchema>['end'], 'sha256'>;

/** What is written: the header, then rows table by table in its order, then the numbers. */
export interface BackupSource {
  readonly header: BackupHeader;
  /** Batches of rows of one table. */
  rows(table: string): AsyncIterable<readonly Row[]>;
  numbers(): Promise<BackupEnd['numbers']>;
}

export type BackupRecord =
  | { readonly kind: 'header'; readonly header: BackupHeader }
  | { readonly kind: 'row'; readonly table: string; readonly row: Row }
  | ({ readonly kind: 'end' } & BackupEnd);

/**
 * Writes `file`, which only its owner may read, and returns how many rows of each table it holds.
 * @throws BackupError when there is a file of that name, or it cannot be written.
 */
export async function writeBackup(file: string, source: BackupSource): Promise<{ rows: BackupEnd['rows']; bytes: number }> {
  if (existsSync(file)) throw exists(file);
  const draft = path.join(path.dirname(file), `.${path.basename(file)}.${randomUUID().slice(0, 8)}`);
  const rows: Record<string, number> = {};
  try {
    await pipeline(Readable.from(linesOf(source, rows)), createGzip(), createWriteStream(draft, { flags: 'wx', mode: 0o600 }));
    await toDisk(draft);
    appear(draft, file);
    await toDisk(path.dirname(file));
  } catch (error) {
    rmSync(draft, { force: true });
    throw cannotWrite(file, error);
  }
  return { rows, bytes: statSync(file).size };
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
  if (error instanceof BackupError || code === undefined || !['open', 'write', 'link', 'rename', 'fsync'].includes(syscall ?? ''))
    return error;
  return new BackupError(`${file} cannot be written (${code}). Choose another place.`);
}

/**
 * Reads a file from its header to its end and checks each line on the way: only who has got the last record knows that the file is whole.
 * @throws BackupError which says what is wrong with it.
 */
export async function* readBackup(file: string): AsyncGenerator<BackupRecord> {
  const reading = new Reading(file);
  for await (const line of splitLines(file)) {
    const record = reading.take(line);
    if (record !== null) yield record;
  }
  if (!reading.ended) throw reading.bad('it ends in the middle: the copy or the backup was cut off');
}

/** Reads one file; returns what its first and last line say. @throws BackupError */
export async function checkBackup(file: string): Promise<{ header: BackupHeader; end: BackupEnd }> {
  let header: BackupHeader | undefined;
  let end: BackupEnd | undefined;
  for await (const record of readBackup(file)) {
    if (record.kind === 'header') header = record.header;
    if (record.kind === 'end') end = record;
  }
  if (!header || !end) throw new Error('a backup that was read has a header and an end');
  return { header, end };
}

class Reading {
  readonly #file: string;
  readonly #hash = createHash('sha256');
  readonly #rows: Record<string, number> = {};
  #header: BackupHeader | null = null;
  #table = '';
  #columns = 0;
  ended = false;

  constructor(file: string) {
    this.#file = file;
  }

  bad(why: string): BackupError {
    return new BackupError(`${this.#file} is damaged: ${why}. Nothing was restored; take another backup.`);
  }

  take(line: Buffer): BackupRecord | null {
    if (this.ended) throw this.bad('something follows its end');
    const value = this.#parse(line);
    if (this.#header === null) return this.#begin(value, line);
    const end = endSchema.safeParse(value);
    if (end.success) return this.#end(end.data.end);
    this.#hash.update(line).update('\n');
    const table = tableSchema.safeParse(value);
    if (table.success) return this.#open(table.data.table);
    const row = rowSchema.safeParse(value);
    if (!row.success || row.data.length !== this.#columns) throw this.bad(`a row of ${this.#table || 'no table'} is not one`);
    this.#rows[this.#table] = (this.#rows[this.#table] ?? 0) + 1;
    return { kind: 'row', table: this.#table, row: row.data };
  }

  #parse(line: Buffer): unknown {
    try {
      return JSON.parse(line.toString('utf8'));
    } catch {
      throw this.#header === null ? notABackup(this.#file) : this.bad('a line cannot be read');
    }
  }

  #begin(value: unknown, line: Buffer): BackupRecord {
    const mark = marked.safeParse(value);
    if (!mark.success) throw notABackup(this.#file);
    if (mark.data.format > BACKUP_FORMAT) {
      throw new BackupError(
        `${this.#file} is of format ${mark.data.format}, and this Heph reads formats up to ${BACKUP_FORMAT}. Restore it with the Heph that wrote it, or a newer one.`,
      );
    }
    const header = headerSchema.safeParse(value);
    if (!header.success) throw this.bad('its header is not whole');
    this.#header = header.data;
    this.#hash.update(line).update('\n');
    return { kind: 'header', header: header.data };
  }

  #open(name: string): null {
    const table = this.#header?.tables.find((one) => one.name === name);
    if (!table || name in this.#rows) throw this.bad(`it has a table ${name} that its header does not announce here`);
    this.#table = name;
    this.#columns = table.columns.length;
    this.#rows[name] = 0;
    return null;
  }

  #end({ rows, numbers, sha256 }: z.infer<typeof endSchema>['end']): BackupRecord {
    if (sha256 !== this.#hash.digest('hex')) throw this.bad('its checksum differs');
    const counts = (of: Readonly<Record<string, number>>) => JSON.stringify(Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1)));
    const announced = this.#header?.tables.every(({ name }) => name in this.#rows) ?? false;
    if (counts(rows) !== counts(this.#rows) || !announced) throw this.bad('its counts of rows differ');
    this.ended = true;
    return { kind: 'end', rows, numbers };
  }
}

const notABackup = (file: string) => new BackupError(`${file} is not a backup of Heph. Nothing was restored.`);

/** The lines of a compressed file. Only a newline ends one: words of people hold every other separator. */
async function* splitLines(file: string): AsyncGenerator<Buffer> {
  const source = createReadStream(file);
  const gunzip = createGunzip();
  source.on('error', (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
        yield Buffer.concat([...pending, chunk.subarray(from, at)]);
        [pending, pendingBytes, from] = [[], 0, at + 1];
      }
      pending.push(chunk.subarray(from));
      pendingBytes += chunk.length - from;
      if (pendingBytes > LINE_MAX_BYTES) throw notABackup(file);
    }
  } catch (error) {
    throw unreadable(file, error);
  } finally {
    source.destroy();
    gunzip.destroy();
  }
}

function unreadable(file: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall !== undefined) return new BackupError(`${file} cannot be read (${code}).`);
  if (code === 'Z_BUF_ERROR') return new Reading(file).bad('it ends in the middle: the copy or the backup was cut off');
  if (!code?.startsWith('Z_')) return error;
  const { message } = error as Error;
  return /incorrect header check|unknown compression/.test(message) ? notABackup(file) : new Reading(file).bad(message);
}
