-- Up Migration
-- What answers, at which price, and who may spend how much: connections, models, bindings, budgets, and the admission of a turn.

-- A provider that this installation may call.
create table llm_connection (
  id uuid primary key,
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  api text not null check (api in ('openai-completions', 'openai-responses', 'anthropic-messages')),
  -- null: the model that is built in.
  base_url text check (char_length(base_url) between 1 and 2000),
  -- Sealed with HEPH_SECRET_KEY (src/kernel/secret-box.ts). The key of the environment stays in the memory of its server.
  api_key_sealed bytea,
  source text not null check (source in ('environment', 'admin')),
  -- The breaker of some server is open: until then no turn is admitted, by the database clock (rule R8).
  paused_until timestamptz,
  disabled_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  -- Rises with what a provider is built from: servers keep one per connection and build it again.
  updated_at timestamptz not null default clock_timestamp(),
  constraint llm_connection_source check ((source = 'environment') = (name in ('environment', 'demo'))),
  constraint llm_connection_environment_key check (source = 'admin' or api_key_sealed is null),
  constraint llm_connection_built_in check ((base_url is null) = (name = 'demo'))
);

create table llm_model (
  id uuid primary key,
  connection_id uuid not null references llm_connection,
  -- Our name; a sandbox sees this one.
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9.-]{0,62}$'),
  -- The provider's name.
  provider_model text not null check (char_length(provider_model) between 1 and 200),
  context_tokens integer not null check (context_tokens > 0),
  output_tokens integer not null check (output_tokens > 0),
  price_kind text not null check (price_kind in ('PRICED', 'NO_CHARGE', 'UNPRICED')),
  -- Why nothing is charged.
  price_note text check (char_length(price_note) between 1 and 500),
  -- Prices per million tokens, in the one currency of the installation.
  input_price numeric check (input_price >= 0),
  output_price numeric check (output_price >= 0),
  -- Without a price of their own, cached tokens cost what input costs.
  cache_read_price numeric check (cache_read_price >= 0),
  cache_write_price numeric check (cache_write_price >= 0),
  created_at timestamptz not null default clock_timestamp(),
  constraint llm_model_priced check (
    (price_kind = 'PRICED') = (input_price is not null and output_price is not null)
    and (price_kind = 'PRICED' or num_nonnulls(input_price, output_price, cache_read_price, cache_write_price) = 0)),
  constraint llm_model_no_charge check ((price_kind = 'NO_CHARGE') = (price_note is not null))
);

-- Which model answers. One that an admin bound goes before the one of the environment.
create table llm_binding (
  purpose text not null check (purpose in ('conversation')),
  -- null: every workspace without a binding of its own.
  workspace_id uuid references workspace,
  source text not null check (source in ('environment', 'admin')),
  model_id uuid not null references llm_model,
  -- The deadline of a turn.
  timeout_ms integer not null check (timeout_ms between 1 and 900000),
  updated_at timestamptz not null default clock_timestamp(),
  constraint llm_binding_environment check (source = 'admin' or workspace_id is null),
  constraint ux_llm_binding unique nulls not distinct (purpose, workspace_id, source)
);

-- A purse: what may be spent in a calendar month (UTC).
create table llm_budget (
  -- null: the whole installation.
  workspace_id uuid references workspace,
  monthly_limit numeric not null check (monthly_limit >= 0),
  updated_at timestamptz not null default clock_timestamp(),
  constraint ux_llm_budget unique nulls not distinct (workspace_id)
);

-- What was spent: the sum over closed calls, by the month (UTC) in which a call was opened. Written with the closing (rule R15).
create table llm_spend (
  month date not null,
  workspace_id uuid not null references workspace,
  cost numeric not null check (cost >= 0),
  primary key (month, workspace_id)
);

-- Whether this member lets an AI model work for them in this workspace.
alter table workspace_member add column ai_allowed boolean not null default true;

-- The price of a call is frozen when it is opened. cost: null while it is open, and where it is not known.
alter table llm_usage_event
  add column connection_id uuid,
  add column model_id uuid,
  add column price_kind text check (price_kind in ('PRICED', 'NO_CHARGE', 'UNPRICED')),
  add column input_price numeric,
  add column output_price numeric,
  add column cache_read_price numeric,
  add column cache_write_price numeric,
  add column cost numeric check (cost >= 0);
create index ix_llm_usage_event_unknown_cost on llm_usage_event (opened_at) where state = 'CLOSED' and cost is null;

-- The admission of a turn of this member now: {"refusal": code}, or what is frozen in mentor_turn.admission.
-- Everything that starts a turn asks it in its own statement (db/ledger/claim.ts, db/ledger/submit.ts).
create function turn_admission(the_workspace uuid, the_account uuid) returns json language sql stable as $$
  with bound as materialized (
    select m.*, c.api, c.paused_until, c.disabled_at, b.timeout_ms
    from llm_binding b join llm_model m on m.id = b.model_id join llm_connection c on c.id = m.connection_id
    where b.purpose = 'conversation' and (b.workspace_id = the_workspace or b.workspace_id is null)
    order by b.workspace_id is null, b.source
    limit 1
  ), purse as materialized (
    select count(*) > 0 as limited, coalesce(bool_or(p.spent >= p.monthly_limit), false) as spent
    from (
      select u.monthly_limit, coalesce((
        select sum(s.cost) from llm_spend s
        where s.month = date_trunc('month', clock_timestamp() at time zone 'UTC')::date
          and (u.workspace_id is null or s.workspace_id = u.workspace_id)), 0) as spent
      from llm_budget u where u.workspace_id = the_workspace or u.workspace_id is null) p
  ), judged as (
    select m.*, case
      when not exists (select from account a where a.id = the_account and a.erasure_requested_at is null) then 'PERSON_ERASED'
      when not coalesce((select w.ai_allowed from workspace_member w where w.workspace_id = the_workspace and w.account_id = the_account), false)
        then 'AI_CHOICE'
      when m.id is null or m.disabled_at is not null then 'NO_MODEL'
      when m.context_tokens < 32768 or m.output_tokens < 4096 then 'MODEL_TOO_SMALL'
      when m.price_kind = 'UNPRICED' and purse.limited then 'UNPRICED'
      when m.price_kind = 'PRICED' and purse.spent then 'BUDGET'
      when m.paused_until > clock_timestamp() then 'MODEL_PAUSED'
      end as refusal
    from purse left join bound m on true
  )
  select case when j.refusal is not null then json_build_object('refusal', j.refusal)
    else json_build_object('connectionId', j.connection_id, 'modelId', j.id, 'model', j.name, 'api', j.api, 'providerModel', j.provider_model,
      'contextTokens', j.context_tokens, 'outputTokens', j.output_tokens, 'deadlineMs', j.timeout_ms, 'priceKind', j.price_kind,
      'inputPrice', j.input_price, 'outputPrice', j.output_price, 'cacheReadPrice', j.cache_read_price, 'cacheWritePrice', j.cache_write_price)
    end
  from judged j
$$;
