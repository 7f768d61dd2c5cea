/**
 * Owns: reading a backup's file and noticing whatever is wrong with it. Does not own: what it is made of (format.ts), where rows go.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import type { z } from 'zod';
import { BackupError } from './errors.ts';
import {
  BACKUP_FORMAT,
  type BackupEnd,
  type BackupHeader,
  endSchema,
  headerSchema,
  markSchema,
  type Row,
  rowSchema,
  tableSchema,
} from './format.ts';

/** Far more than a row can hold; a line that has no end is none of ours. */
const LINE_MAX_BYTES = 512 * 1024 * 1024;
const NEWLINE = 10;

export type BackupRecord =
  | { readonly kind: 'header'; readonly header: BackupHeader }
  | { readonly kind: 'row'; readonly table: string; readonly row: Row }
  | ({ readonly kind: 'end' } & BackupEnd);

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
    const mark = markSchema.safeParse(value);
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
