/**
 * Owns: what a provider is built from: a connection that an admin added.
 */
import { z } from 'zod';
import type { LlmApi } from '../../src/contract/agent.ts';
import { type Executor, sql } from '../pool.ts';

export interface ConnectionRow {
  readonly api: LlmApi;
  readonly baseUrl: string;
  /** Sealed for the connection's id; null: the provider asks for none. */
  readonly apiKeySealed: Buffer | null;
}

const connectionRow = z.object({ api: z.string() as z.ZodType<LlmApi>, base_url: z.string(), sealed: z.string().nullable() });

/** null: there is no such connection of an admin. */
export async function readConnection(db: Executor, id: string): Promise<ConnectionRow | null> {
  const row = await db.maybeOne(sql.prepared('gateway_read_connection', connectionRow)`
    select api, base_url, encode(api_key_sealed, 'base64') as sealed from llm_connection where id = ${id} and source = 'admin'`);
  return row && { api: row.api, baseUrl: row.base_url, apiKeySealed: row.sealed === null ? null : Buffer.from(row.sealed, 'base64') };
}
