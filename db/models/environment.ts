/**
 * Owns: the rows of the model that a server's own settings name: a connection `environment` or `demo`, its model, and the default binding.
 * Of servers that were started with different settings the last one wins; `isEnvironmentModel` lets the others say so.
 * A binding of an admin goes before this one (the function turn_admission).
 */
import { z } from 'zod';
import type { LlmApi } from '../../src/contract/agent.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { type Database, type Executor, sql } from '../pool.ts';

/** `NO_CHARGE` with why, or prices per million tokens as decimals. */
export type EnvironmentPrice =
  | { readonly kind: 'NO_CHARGE'; readonly note: string }
  | { readonly kind: 'PRICED'; readonly input: string; readonly output: string };

export interface EnvironmentModel {
  /** Names of the connection and of the model: `environment`, or `demo` for the built-in model. */
  readonly name: 'environment' | 'demo';
  readonly api: LlmApi;
  /** null: the built-in model. Without a key: that one stays in memory. */
  readonly baseUrl: string | null;
  readonly providerModel: string;
  readonly contextTokens: number;
  readonly outputTokens: number;
  readonly price: EnvironmentPrice;
  /** The deadline of a turn. */
  readonly timeoutMs: number;
}

const idRow = z.object({ id: z.string() });

/** Writes the rows, in the order connection, model, binding: servers that start together wait for each other. */
export function writeEnvironmentModel(db: Database, m: EnvironmentModel): Promise<void> {
  return db.transaction(async (tx) => {
    const connection = await tx.one(sql.type(idRow)`
      insert into llm_connection as c (id, name, api, base_url, source)
      values (${uuidv7()}, ${m.name}, ${m.api}, ${m.baseUrl}, 'environment')
      on conflict (name) do update set api = excluded.api, base_url = excluded.base_url, disabled_at = null,
        paused_until = case when c.base_url is not distinct from excluded.base_url then c.paused_until end,
        updated_at = case when (c.api, c.base_url) is distinct from (excluded.api, excluded.base_url) then clock_timestamp() else c.updated_at end
      returning id`);
    const model = await writeModel(tx, connection.id, m);
    await tx.one(sql.type(idRow)`
      insert into llm_binding (purpose, workspace_id, source, model_id, timeout_ms)
      values ('conversation', null, 'environment', ${model}, ${m.timeoutMs})
      on conflict on constraint ux_llm_binding do update
        set model_id = excluded.model_id, timeout_ms = excluded.timeout_ms, updated_at = clock_timestamp()
      returning model_id as id`);
  });
}

async function writeModel(tx: Executor, connectionId: string, m: EnvironmentModel): Promise<string> {
  const [note, input, output] = m.price.kind === 'PRICED' ? [null, m.price.input, m.price.output] : [m.price.note, null, null];
  const model = await tx.one(sql.type(idRow)`
    insert into llm_model (id, connection_id, name, provider_model, context_tokens, output_tokens, price_kind, price_note, input_price, output_price)
    values (${uuidv7()}, ${connectionId}, ${m.name}, ${m.providerModel}, ${m.contextTokens}, ${m.outputTokens},
      ${m.price.kind}, ${note}, ${input}::text::numeric, ${output}::text::numeric)
    on conflict (name) do update set provider_model = excluded.provider_model, context_tokens = excluded.context_tokens,
      output_tokens = excluded.output_tokens, price_kind = excluded.price_kind, price_note = excluded.price_note,
      input_price = excluded.input_price, output_price = excluded.output_price, cache_read_price = null, cache_write_price = null
    returning id`);
  return model.id;
}

const boundRow = z.object({ name: z.string(), api: z.string(), base_url: z.string().nullable(), provider_model: z.string() });

/** Whether the default binding of the environment is the model of these settings. */
export async function isEnvironmentModel(db: Executor, m: EnvironmentModel): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('models_environment', boundRow)`
    select c.name, c.api, c.base_url, m.provider_model
    from llm_binding b join llm_model m on m.id = b.model_id join llm_connection c on c.id = m.connection_id
    where b.purpose = 'conversation' and b.workspace_id is null and b.source = 'environment'`);
  return row?.name === m.name && row.api === m.api && row.base_url === m.baseUrl && row.provider_model === m.providerModel;
}
