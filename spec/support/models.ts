/**
 * Models for specs: the rows that a server would write at its start, so that turns are admitted; and rows of an admin.
 */
import { z } from 'zod';
import { type EnvironmentModel, writeEnvironmentModel } from '../../db/models/environment.ts';
import { type Database, type Executor, sql } from '../../db/pool.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';

export const SPEC_MODEL: EnvironmentModel = {
  name: 'environment',
  api: 'openai-completions',
  baseUrl: 'http://127.0.0.1:9/v1',
  providerModel: 'provider-model-9',
  contextTokens: 100_000,
  outputTokens: 8_000,
  price: { kind: 'NO_CHARGE', note: 'a spec' },
  timeoutMs: 300_000,
};

/** Binds a model for every workspace, as a server's environment does. */
export function bindModel(db: Database, change: Partial<EnvironmentModel> = {}): Promise<void> {
  return writeEnvironmentModel(db, { ...SPEC_MODEL, ...change });
}

const admissionOf = z.object({ admission: z.record(z.string(), z.unknown()) });

/** What the database says about a turn of this member now. */
export async function admission(db: Executor, member: { workspaceId: string; accountId: string }): Promise<Record<string, unknown>> {
  const row = await db.one(sql.type(admissionOf)`select turn_admission(${member.workspaceId}, ${member.accountId}) as admission`);
  return row.admission;
}

/** Sets a budget; null is the one of the installation. */
export async function setBudget(db: Executor, workspaceId: string | null, limit: string): Promise<void> {
  await db.any(sql.type(z.object({}))`
    insert into llm_budget (workspace_id, monthly_limit) values (${workspaceId}, ${limit}::text::numeric)
    on conflict on constraint ux_llm_budget do update set monthly_limit = excluded.monthly_limit`);
}

/** Adds to what the workspace has spent this month. */
export async function spend(db: Executor, workspaceId: string, cost: string): Promise<void> {
  await db.any(sql.type(z.object({}))`
    insert into llm_spend (month, workspace_id, cost)
    values (date_trunc('month', clock_timestamp() at time zone 'UTC')::date, ${workspaceId}, ${cost}::text::numeric)
    on conflict (month, workspace_id) do update set cost = llm_spend.cost + excluded.cost`);
}

/** A model that an admin added on a connection of its own, bound to one workspace, or to all (null). Returns their ids. */
export async function bindAdminModel(
  db: Executor,
  workspaceId: string | null,
  model: { contextTokens?: number; outputTokens?: number; timeoutMs?: number; baseUrl?: string; providerModel?: string } = {},
): Promise<{ connectionId: string; modelId: string }> {
  const [connectionId, modelId] = [uuidv7(), uuidv7()];
  const name = `m-${modelId}`;
  const {
    contextTokens = 64_000,
    outputTokens = 6_000,
    timeoutMs = 120_000,
    baseUrl = 'http://127.0.0.1:9/v1',
    providerModel = 'p',
  } = model;
  await db.any(sql.type(z.object({}))`
    insert into llm_connection (id, name, api, base_url, source) values (${connectionId}, ${name}, 'openai-completions', ${baseUrl}, 'admin')`);
  await db.any(sql.type(z.object({}))`
    insert into llm_model (id, connection_id, name, provider_model, context_tokens, output_tokens, price_kind)
    values (${modelId}, ${connectionId}, ${name}, ${providerModel}, ${contextTokens}, ${outputTokens}, 'UNPRICED')`);
  await db.any(sql.type(z.object({}))`
    insert into llm_binding (purpose, workspace_id, source, model_id, timeout_ms)
    values ('conversation', ${workspaceId}, 'admin', ${modelId}, ${timeoutMs})`);
  return { connectionId, modelId };
}
