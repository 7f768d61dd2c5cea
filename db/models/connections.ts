/**
 * Owns: connections as the admin API reads and writes them. A key goes in sealed and never comes out here.
 */
import { z } from 'zod';
import type { ConnectionInput, ConnectionView } from '../../src/contract/admin.ts';
import type { SecretStore } from '../../src/kernel/rotate-secrets.ts';
import { type Executor, sql } from '../pool.ts';

const idRow = z.object({ id: z.string() });
const viewRow = z.object({
  name: z.string(),
  api: z.string(),
  base_url: z.string().nullable(),
  source: z.enum(['environment', 'admin']),
  has_key: z.boolean(),
  paused_until: z.string().nullable(),
  disabled: z.boolean(),
});

export async function listConnections(db: Executor): Promise<readonly ConnectionView[]> {
  const rows = await db.any(sql.prepared('models_list_connections', viewRow)`
    select name, api, base_url, source, api_key_sealed is not null as has_key, disabled_at is not null as disabled,
      case when paused_until > clock_timestamp() then paused_until end as paused_until
    from llm_connection order by name`);
  return rows.map((row) => ({
    ...{ name: row.name, api: row.api, baseUrl: row.base_url, source: row.source },
    ...{ hasKey: row.has_key, pausedUntil: row.paused_until, disabled: row.disabled },
  }));
}

/** False: the name is taken. */
export async function addConnection(
  db: Executor,
  { id, name, api, baseUrl, sealed }: Omit<ConnectionInput, 'apiKey'> & { readonly id: string; readonly sealed: Buffer | null },
): Promise<boolean> {
  const row = await db.maybeOne(sql.type(idRow)`
    insert into llm_connection (id, name, api, base_url, api_key_sealed, source)
    values (${id}, ${name}, ${api}, ${baseUrl}, ${sealed === null ? null : sql.binary(sealed)}, 'admin')
    on conflict (name) do nothing returning id`);
  return row !== null;
}

/** The id of a connection, with whose it is. */
export async function findConnection(db: Executor, name: string): Promise<{ id: string; source: 'environment' | 'admin' } | null> {
  return db.maybeOne(sql.type(idRow.extend({ source: z.enum(['environment', 'admin']) }))`
    select id, source from llm_connection where name = ${name}`);
}

/** Enabling it also ends a pause. */
export async function disableConnection(db: Executor, id: string, disabled: boolean): Promise<void> {
  await db.any(sql.type(idRow)`
    update llm_connection set disabled_at = case when ${disabled}::boolean then coalesce(disabled_at, clock_timestamp()) end,
      paused_until = case when ${disabled}::boolean then paused_until end
    where id = ${id} returning id`);
}

export async function setConnectionKey(db: Executor, id: string, sealed: Buffer): Promise<void> {
  await db.any(sql.type(idRow)`
    update llm_connection set api_key_sealed = ${sql.binary(sealed)}, updated_at = clock_timestamp() where id = ${id} returning id`);
}

const sealedRow = z.object({ id: z.string(), sealed: z.custom<Buffer>((value) => Buffer.isBuffer(value)) });

/** Every key that is stored, for a rotation. */
export function connectionKeys(db: Executor): SecretStore {
  return {
    all: () =>
      db.any(sql.type(sealedRow)`
        select id, api_key_sealed as sealed from llm_connection where api_key_sealed is not null order by id`),
    replace: async ({ id, from, to }) => {
      const row = await db.maybeOne(sql.type(idRow)`
        update llm_connection set api_key_sealed = ${sql.binary(to)}, updated_at = clock_timestamp()
        where id = ${id} and api_key_sealed = ${sql.binary(from)} returning id`);
      return row !== null;
    },
  };
}
