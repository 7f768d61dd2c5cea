/**
 * Owns: `heph backup`, `heph restore` and `heph migrate`: which database they mean, and what they say.
 * Does not own: what a backup is (db/backup), the embedded PostgreSQL (db/embedded).
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { backup } from '../db/backup/dump.ts';
import { BackupError } from '../db/backup/errors.ts';
import { openBackup, type RestoreReport, restore } from '../db/backup/load.ts';
import { EmbeddedPostgresError, findEmbedded, putBackCluster, startEmbeddedPostgres } from '../db/embedded/index.ts';
import { migrate } from '../db/migrate.ts';
import type { Config } from './config.ts';
import { RuntimeFault } from './kernel/faults.ts';
import { silentLog } from './kernel/log.ts';

/** The command's own words, on standard output and on standard error. */
export interface Voice {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

const MB = 1_000_000;
const STANDARD_OUTPUT = '-';

/** `file` is `-` for the standard output; then all is said on the other one. Exit codes: 0 written, 1 not. */
export function runBackup(config: Config, file: string, voice: Voice): Promise<number> {
  return explained(voice, async () => {
    const request = { to: file === STANDARD_OUTPUT ? process.stdout : path.resolve(file), version: ownVersion() };
    const { bytes, migration, takenAt, rows } = await withDatabase(config, (url) => backup(url, request));
    const say = file === STANDARD_OUTPUT ? voice.err : voice.out;
    say(
      `Backed up ${counted(rows)} as they were at ${takenAt} (migration ${migration}), to ${file} (${(bytes / MB).toFixed(1)} MB).\n` +
        'It holds what people wrote: keep it as you keep the database. Keep apart from it HEPH_SECRET_KEY, without which nobody opens the keys\n' +
        'and tokens in it, and your settings. Not in it: sign-ins, and repository mirrors in HEPH_DATA_DIR, which are fetched again.\n',
    );
  });
}

/** Exit codes: 0 restored, 1 nothing was. */
export function runRestore(config: Config, file: string, voice: Voice): Promise<number> {
  return explained(voice, async () => {
    const from = await openBackup(path.resolve(file));
    if (config.databaseUrl !== null) return voice.out(restored(await restore(config.databaseUrl, from)));
    const embedded = await startEmbeddedPostgres({ dataDir: config.dataDir, log: silentLog, keepOtherVersion: true });
    let done = false;
    try {
      const report = await restore(embedded.url, from);
      done = true;
      const kept =
        embedded.kept === undefined ? '' : `The database of the other version is kept in ${embedded.kept}; remove it when all is well.\n`;
      voice.out(`${restored(report)}${kept}`);
    } finally {
      await embedded.stop();
      if (!done && embedded.kept !== undefined) await putBackCluster(config.dataDir, embedded.kept);
    }
  });
}

/** Brings the database to this Heph's schema and starts nothing: before servers are replaced. Exit codes: 0 done, 1 not. */
export function runMigrate(config: Config, voice: Voice): Promise<number> {
  return explained(voice, async () => {
    if (config.databaseUrl === null)
      throw new BackupError('HEPH_DATABASE_URL is not set. The embedded database is migrated by each start.');
    const applied = await migrate(config.databaseUrl);
    voice.out(applied.length === 0 ? 'The database has every migration already.\n' : `Applied: ${applied.join(', ')}.\n`);
  });
}

function restored({ header, rows, migrated, postsInDoubt, answersInDoubt }: RestoreReport): string {
  const lines = [
    `Restored ${counted(rows)} as they were at ${header.takenAt} (Heph ${header.version}, migration ${header.migration}).`,
    ...(migrated.length === 0 ? [] : [`Applied to them: ${migrated.join(', ')}.`]),
    'Everybody signs in again. Start with the HEPH_SECRET_KEY of the installation that was backed up. What happened since is gone:',
    'erase again who asked for it since, and remove again who left. Turns that were open are tried again when a server starts.',
  ];
  if (postsInDoubt > 0) lines.push(`${postsInDoubt} post(s) to Slack may have been sent since: a server reads Slack before it sends one.`);
  if (answersInDoubt > 0) lines.push(`${answersInDoubt} answer(s) to Slack wait for you: heph outbox list.`);
  return lines.map((line) => `${line}\n`).join('');
}

function counted(rows: Readonly<Record<string, number>>): string {
  const sum = Object.values(rows).reduce((total, count) => total + count, 0);
  return `${sum} rows of ${Object.keys(rows).length} tables`;
}

/** Runs `work` on the database of the settings: the external one, the embedded one that a server runs, or one that is started for it. */
async function withDatabase<T>({ databaseUrl, dataDir }: Config, work: (url: string) => Promise<T>): Promise<T> {
  if (databaseUrl !== null) return work(databaseUrl);
  const found = findEmbedded(dataDir);
  if (found.state === 'running') return work(found.url);
  if (found.state === 'none')
    throw new BackupError(`There is no database in ${dataDir}. Set HEPH_DATA_DIR or HEPH_DATABASE_URL to where it is.`);
  const embedded = await startEmbeddedPostgres({ dataDir, log: silentLog });
  try {
    return await work(embedded.url);
  } finally {
    await embedded.stop();
  }
}

async function explained({ err }: Voice, work: () => Promise<void>): Promise<number> {
  try {
    await work();
    return 0;
  } catch (error) {
    const said = sentence(error);
    if (said === null) throw error;
    err(`${said}\n`);
    return 1;
  }
}

function sentence(error: unknown): string | null {
  if (error instanceof BackupError || error instanceof EmbeddedPostgresError) return error.message;
  if (!(error instanceof RuntimeFault)) return null;
  if (error.code === 'DATABASE_UNAVAILABLE')
    return 'The database does not answer. Start it, or correct HEPH_DATABASE_URL. Nothing was changed.';
  if (error.code === 'BUSY') return 'Somebody uses the database. Stop every server on it and try again. Nothing was changed.';
  // What PostgreSQL says may quote a row: its code must do.
  const { code, constraint, table } = (error.cause ?? {}) as { code?: string; constraint?: string; table?: string };
  const where = [table, constraint].filter(Boolean).join(', ');
  return `PostgreSQL refused (${[code ?? error.code, where].filter(Boolean).join(': ')}). Nothing was changed.`;
}

function ownVersion(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
}
