/**
 * Owns: what happens to a tracked file that a tool makes: written, or with `--check` only compared.
 * Does not own: how the text is made (schema.ts, openapi.ts).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from './tree.ts';

/** A tracked file, where its text comes from in words, and the command that writes it again. */
export interface GeneratedFile {
  readonly path: string;
  readonly source: string;
  readonly command: string;
}

/** Writes `text`, or compares when the process was started with `--check`; a difference sets the exit code. */
export function writeOrCheck(file: GeneratedFile, text: string): void {
  const path = join(PROJECT_ROOT, file.path);
  const tracked = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  if (text === tracked) {
    console.log(`${file.path} is what ${file.source}`);
  } else if (process.argv.includes('--check')) {
    console.error(`${file.path} ${tracked === undefined ? 'is missing' : `is not what ${file.source}`}. \`${file.command}\` updates it.`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, text);
    console.log(`${file.path} written`);
  }
}
