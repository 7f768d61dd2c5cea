/**
 * Owns: db/schema.sql, the current schema in one file, made from the migrations.
 * Does not own: applying migrations to a real database (db/migrate.ts).
 *
 * PGlite runs the migrations because the embedded PostgreSQL ships no pg_dump and a system's may be older than the server.
 * `npm run schema` writes the file, `--check` only compares.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Extension, PGlite } from '@electric-sql/pglite';
import { pgDump } from '@electric-sql/pglite-tools/pg_dump';
import { writeOrCheck } from './generated.ts';
import { PROJECT_ROOT } from './tree.ts';

const HEADER = '-- The schema after every migration. Written by `npm run schema`; change it by a migration, never here.\n';
const UP = /^\s*--[\s-]*up\s+migration.*$/im;
const DOWN = /^\s*--[\s-]*down\s+migration/im;
const WANTED_EXTENSION = /create\s+extension\s+(?:if\s+not\s+exists\s+)?"?([a-z0-9_-]+)/gi;
/** What pg_dump sets for its own session; named, so that no SET of a function's body is ever dropped. */
const SESSION_SETTINGS = [
  '\\w+_timeout',
  'client_encoding',
  'standard_conforming_strings',
  'check_function_bodies',
  'xmloption',
  'client_min_messages',
  'row_security',
  'default_table\\w+',
];
const SESSION_SETTING = new RegExp(`^SET (${SESSION_SETTINGS.join('|')}) = .*;$`, 'gm');
/** Part of every PostgreSQL; PGlite has it built in. */
const BUILT_IN_EXTENSIONS = new Set(['plpgsql']);

/** The normalised dump of the schema that a folder of migrations makes. Throws with the migration's name when one fails. */
export async function dumpSchema(migrationsDir: string): Promise<string> {
  const migrations = readdirSync(migrationsDir)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ name, sql: upPart(name, readFileSync(join(migrationsDir, name), 'utf8')) }));
  const database = await PGlite.create({ extensions: await loadExtensions(migrations.map(({ sql }) => sql).join('\n')) });
  try {
    for (const { name, sql } of migrations) await apply(database, name, sql);
    const dump = await pgDump({ pg: database, args: ['--schema-only', '--no-owner', '--no-privileges'] });
    return normaliseDump(await dump.text());
  } finally {
    await database.close();
  }
}

/** The part that node-pg-migrate runs forwards. Migrations here are never run backwards. */
export function upPart(name: string, text: string): string {
  const up = UP.exec(text);
  const down = DOWN.exec(text);
  if (down === null) return text;
  if (up === null || down.index < up.index) {
    throw new Error(`${name}: "Down Migration" needs "Up Migration" above it, or node-pg-migrate runs both parts. Better: leave it out.`);
  }
  return text.slice(up.index, down.index);
}

/**
 * Keeps what a reader wants: statements, each under a line with its kind and name. Drops versions, owners and session settings,
 * so that only a change of the schema changes the file.
 */
export function normaliseDump(dump: string): string {
  const body = dump
    .replace(/^\\(un)?restrict .*$/gm, '')
    .replace(SESSION_SETTING, '')
    .replace(/^SELECT pg_catalog\.set_config\('search_path'.*$/gm, '')
    .replace(/^-- Dumped (from|by) .*$/gm, '')
    .replace(/^--\n-- PostgreSQL database dump.*\n--$/gm, '')
    .replace(/^--\n-- Name: (.*); Type: (.*); Schema: .*\n--$/gm, '-- $2 $1')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  return `${HEADER}\n${body}\n`;
}

async function apply(database: PGlite, name: string, sql: string): Promise<void> {
  try {
    await database.exec(sql);
  } catch (error) {
    throw new Error(`${name} does not run in PGlite: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

async function loadExtensions(sql: string): Promise<Record<string, Extension>> {
  const wanted = new Set([...sql.matchAll(WANTED_EXTENSION)].map((match) => (match[1] ?? '').toLowerCase()));
  const loaded: Record<string, Extension> = {};
  for (const name of [...wanted].filter((candidate) => !BUILT_IN_EXTENSIONS.has(candidate))) {
    const bundle: Record<string, Extension> = await import(`@electric-sql/pglite/contrib/${name.replaceAll('-', '_')}`).catch(() => ({}));
    const extension = bundle[name.replaceAll('-', '_')];
    if (extension === undefined) throw new Error(`PGlite has no extension ${name}: db/schema.sql cannot be made with it.`);
    loaded[name] = extension;
  }
  return loaded;
}

if (import.meta.main) {
  const text = await dumpSchema(join(PROJECT_ROOT, 'db/migrations'));
  writeOrCheck({ path: 'db/schema.sql', source: 'the migrations make', command: 'npm run schema' }, text);
}
