/**
 * Owns: what a backup's file is made of. It is gzip of lines of JSON, so that `zcat FILE | head -1` says what it is:
 *   the header; for each table a line with its name and one line per row, its values as PostgreSQL writes them; at last the counts, the
 *   numbers of the identities and the SHA-256 of all lines before. Without that last line a file is no backup.
 * Does not own: writing one (write-file.ts), reading one (read-file.ts).
 */
import { z } from 'zod';

/** Raised when an older Heph could not read the file any more. */
export const BACKUP_FORMAT = 1;

export const markSchema = z.object({ heph: z.literal('backup'), format: z.number() });
export const headerSchema = markSchema.extend({
  /** Which Heph wrote it. */
  version: z.string(),
  /** The newest migration of the rows. */
  migration: z.string(),
  postgres: z.string(),
  takenAt: z.string(),
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()) })),
});
export const tableSchema = z.object({ table: z.string() });
export const rowSchema = z.array(z.string().nullable());
export const endSchema = z.object({
  end: z.object({ rows: z.record(z.string(), z.number()), numbers: z.record(z.string(), z.string().nullable()), sha256: z.string() }),
});

export type BackupHeader = Omit<z.infer<typeof headerSchema>, 'heph' | 'format'>;
export type Row = readonly (string | null)[];
/** `numbers`: `table.column` of an identity -> the last one that was given out. */
export type BackupEnd = Omit<z.infer<typeof endSchema>['end'], 'sha256'>;
