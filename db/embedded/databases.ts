/**
 * Owns: making and dropping whole databases, here and for specs that clone a migrated template. A connection per call: these are rare.
 * Does not own: what is inside a database (db/migrations).
 */
import pg from 'pg';

const CONNECT_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 60_000;
/** PostgreSQL cuts a longer name without an error, and the url would name another database. */
const NAME_MAX_BYTES = 63;

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS,
    application_name: 'heph-databases',
  });
  // A connection that breaks while it is idle has nobody else to tell; the next statement fails anyway.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

function urlOf(adminUrl: string, name: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}

function quoted(name: string): string {
  const bytes = Buffer.byteLength(name);
  if (bytes === 0 || bytes > NAME_MAX_BYTES) throw new RangeError(`a database name of ${bytes} bytes; 1 to ${NAME_MAX_BYTES} are allowed`);
  return pg.escapeIdentifier(name);
}

/**
 * Makes a database, empty or as a copy of `template` (which must have no open connection), and returns its url.
 * @throws what pg throws: 42P04 if it exists, 55006 if the template is in use.
 */
export async function createDatabase(adminUrl: string, name: string, template?: string): Promise<string> {
  const from = template === undefined ? '' : ` template ${quoted(template)}`;
  await withClient(adminUrl, (client) => client.query(`create database ${quoted(name)}${from}`));
  return urlOf(adminUrl, name);
}

/** Drops a database with all connections to it. Harmless if there is none of that name. */
export async function dropDatabase(adminUrl: string, name: string): Promise<void> {
  await withClient(adminUrl, (client) => client.query(`drop database if exists ${quoted(name)} with (force)`));
}

/** The url of database `name`, which is made if it is missing. */
export async function ensureDatabase(adminUrl: string, name: string): Promise<string> {
  await withClient(adminUrl, async (client) => {
    const found = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (found.rowCount === 0) await client.query(`create database ${quoted(name)}`);
  });
  return urlOf(adminUrl, name);
}
