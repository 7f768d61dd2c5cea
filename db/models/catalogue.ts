/**
 * Owns: models and bindings as the admin API reads and writes them.
 */
import { z } from 'zod';
import type { BindingView, ModelInput, ModelView, Price } from '../../src/contract/admin.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

const idRow = z.object({ id: z.string() });
const modelRow = z.object({
  name: z.string(),
  connection: z.string(),
  provider_model: z.string(),
  context_tokens: z.number(),
  output_tokens: z.number(),
  price_kind: z.enum(['PRICED', 'NO_CHARGE', 'UNPRICED']),
  price_note: z.string().nullable(),
  input: z.string().nullable(),
  output: z.string().nullable(),
  cache_read: z.string().nullable(),
  cache_write: z.string().nullable(),
});

function toPrice(row: z.infer<typeof modelRow>): Price {
  if (row.price_kind === 'NO_CHARGE') return { kind: 'NO_CHARGE', note: row.price_note ?? '' };
  if (row.price_kind === 'UNPRICED') return { kind: 'UNPRICED' };
  const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = row;
  const cached = { ...(cacheRead === null ? {} : { cacheRead }), ...(cacheWrite === null ? {} : { cacheWrite }) };
  return { kind: 'PRICED', input: input ?? '', output: output ?? '', ...cached };
}

/** The columns of a price. */
function columns(price: Price) {
  const none = { note: null, input: null, output: null, cacheRead: null, cacheWrite: null };
  if (price.kind === 'NO_CHARGE') return { ...none, note: price.note };
  return price.kind === 'UNPRICED' ? none : { ...none, ...price, cacheRead: price.cacheRead ?? null, cacheWrite: price.cacheWrite ?? null };
}

export async function listModels(db: Executor): Promise<readonly ModelView[]> {
  const rows = await db.any(sql.prepared('models_list_models', modelRow)`
    select m.name, c.name as connection, m.provider_model, m.context_tokens, m.output_tokens, m.price_kind, m.price_note,
      m.input_price::text as input, m.output_price::text as output, m.cache_read_price::text as cache_read, m.cache_write_price::text as cache_write
    from llm_model m join llm_connection c on c.id = m.connection_id order by m.name`);
  return rows.map((row) => ({
    ...{ name: row.name, connection: row.connection, providerModel: row.provider_model },
    ...{ contextTokens: row.context_tokens, outputTokens: row.output_tokens, price: toPrice(row) },
  }));
}

/** False: the name is taken. */
export async function addModel(db: Executor, connectionId: string, model: ModelInput): Promise<boolean> {
  const { note, input, output, cacheRead, cacheWrite } = columns(model.price);
  const row = await db.maybeOne(sql.type(idRow)`
    insert into llm_model (id, connection_id, name, provider_model, context_tokens, output_tokens, price_kind, price_note,
      input_price, output_price, cache_read_price, cache_write_price)
    values (${uuidv7()}, ${connectionId}, ${model.name}, ${model.providerModel}, ${model.contextTokens}, ${model.outputTokens},
      ${model.price.kind}, ${note}, ${input}::text::numeric, ${output}::text::numeric, ${cacheRead}::text::numeric, ${cacheWrite}::text::numeric)
    on conflict (name) do nothing returning id`);
  return row !== null;
}

/** Turns that are admitted already keep the price that they were admitted with. False: there is no such model. */
export async function priceModel(db: Executor, name: string, price: Price): Promise<boolean> {
  const { note, input, output, cacheRead, cacheWrite } = columns(price);
  const row = await db.maybeOne(sql.type(idRow)`
    update llm_model set price_kind = ${price.kind}, price_note = ${note}, input_price = ${input}::text::numeric,
      output_price = ${output}::text::numeric, cache_read_price = ${cacheRead}::text::numeric, cache_write_price = ${cacheWrite}::text::numeric
    where name = ${name} returning id`);
  return row !== null;
}

const boundRow = z.object({ id: z.string(), context_tokens: z.number(), output_tokens: z.number() });

export async function findModel(db: Executor, name: string): Promise<{ id: string; contextTokens: number; outputTokens: number } | null> {
  const row = await db.maybeOne(sql.type(boundRow)`select id, context_tokens, output_tokens from llm_model where name = ${name}`);
  return row && { id: row.id, contextTokens: row.context_tokens, outputTokens: row.output_tokens };
}

export async function findWorkspace(db: Executor, slug: string): Promise<string | null> {
  return (await db.maybeOne(sql.type(idRow)`select id from workspace where slug = ${slug}`))?.id ?? null;
}

const bindingRow = z.object({
  workspace: z.string().nullable(),
  model: z.string(),
  timeout_ms: z.number(),
  source: z.enum(['environment', 'admin']),
});

export async function listBindings(db: Executor): Promise<readonly BindingView[]> {
  const rows = await db.any(sql.prepared('models_list_bindings', bindingRow)`
    select w.slug as workspace, m.name as model, b.timeout_ms, b.source
    from llm_binding b join llm_model m on m.id = b.model_id left join workspace w on w.id = b.workspace_id
    where b.purpose = 'conversation' order by w.slug nulls first, b.source`);
  return rows.map(({ timeout_ms: timeoutMs, ...same }) => ({ ...same, timeoutMs }));
}

/** `workspaceId` null: the default of every workspace. */
export async function bind(
  db: Executor,
  { workspaceId, modelId, timeoutMs }: { readonly workspaceId: string | null; readonly modelId: string; readonly timeoutMs: number },
): Promise<void> {
  await db.any(sql.type(idRow)`
    insert into llm_binding (purpose, workspace_id, source, model_id, timeout_ms) values ('conversation', ${workspaceId}, 'admin', ${modelId}, ${timeoutMs})
    on conflict on constraint ux_llm_binding do update
      set model_id = excluded.model_id, timeout_ms = excluded.timeout_ms, updated_at = clock_timestamp()
    returning model_id as id`);
}

export async function unbind(db: Executor, workspaceId: string | null): Promise<void> {
  await db.any(sql.type(idRow)`
    delete from llm_binding where purpose = 'conversation' and source = 'admin' and workspace_id is not distinct from ${workspaceId}::uuid
    returning model_id as id`);
}
