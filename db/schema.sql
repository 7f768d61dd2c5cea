-- The schema after every migration. Written by `npm run schema`; change it by a migration, never here.

-- FUNCTION enqueue_slack_post()

CREATE FUNCTION public.enqueue_slack_post() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  insert into outbox_action (id, kind, workspace_id, team_id, channel_id, thread_ts, turn_id, due_at)
  select gen_random_uuid(), 'SLACK_POST', s.workspace_id, s.team_id, s.channel_id, s.thread_ts, s.turn_id, clock_timestamp()
  from slack_turn s where s.turn_id = new.turn_id
  on conflict (turn_id) do nothing;
  return null;
end $$;

-- FUNCTION mentor_entry_edited()

CREATE FUNCTION public.mentor_entry_edited() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ begin
  new.edited_at := clock_timestamp();
  return new;
end $$;

-- FUNCTION mentor_search_words(text)

CREATE FUNCTION public.mentor_search_words(words text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  select case
    when octet_length(words) = char_length(words) then regexp_replace(lower(left(words, 100000)), '[!-/:-@\[-`{-~]+', ' ', 'g')
    else regexp_replace(
      regexp_replace(lower(left(words, 100000)),
        '[!-/:-@\[-`{-~\u00a0-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2000-\u206f\u3000-\u3004\u3008-\u3020\ufe30-\ufe4f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+',
        ' ', 'g'),
      '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3021-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])',
      ' \1 ', 'g')
  end
$$;

-- FUNCTION mentor_turn_run_agrees()

CREATE FUNCTION public.mentor_turn_run_agrees() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
  the_run agent_run;
  the_status text;
  slots integer;
begin
  if tg_table_name = 'mentor_turn' then
    select * into the_run from agent_run where turn_id = new.id;
    if not found then
      raise exception using errcode = 'HP006', constraint = 'mentor_turn_run_agrees', message = 'a turn has no run';
    end if;
  elsif tg_table_name = 'agent_run' then
    select * into the_run from agent_run where id = new.id;
  else
    select * into the_run from agent_run where id = coalesce(new.run_id, old.run_id);
  end if;
  if the_run.id is null then
    return null;
  end if;
  select count(*) into slots from turn_slot where run_id = the_run.id;
  if slots <> (case when the_run.kind = 'TURN' and the_run.state = 'LEASED' then 1 else 0 end) then
    raise exception using errcode = 'HP004', constraint = 'mentor_turn_run_agrees', message = 'run and slot disagree';
  end if;
  if the_run.kind = 'TURN' then
    select status into the_status from mentor_turn where id = the_run.turn_id;
    if not (
      (the_status = 'QUEUED' and the_run.state = 'WAITING')
      or (the_status = 'RUNNING' and the_run.state = 'LEASED')
      or (the_status = 'STOPPED' and the_run.state in ('LEASED', 'ENDED'))
      or (the_status in ('DONE', 'FAILED') and the_run.state = 'ENDED')) then
      raise exception using errcode = 'HP006', constraint = 'mentor_turn_run_agrees',
        message = format('turn %s and run %s disagree', the_status, the_run.state);
    end if;
  end if;
  return null;
end $$;

-- FUNCTION outbox_action_step()

CREATE FUNCTION public.outbox_action_step() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
  step text := old.state || ' ' || new.state;
  by_server text[] := array[
    'PENDING SENDING', 'PENDING PARKED', 'RETRY SENDING', 'RETRY PARKED', 'PARKED RETRY',
    'SENDING SENT', 'SENDING RETRY', 'SENDING UNCERTAIN', 'SENDING PARKED', 'SENDING DEAD',
    'UNCERTAIN SENT', 'UNCERTAIN RETRY', 'UNCERTAIN PARKED', 'UNCERTAIN DEAD'];
  by_operator text[] := array['UNCERTAIN SENT', 'UNCERTAIN RETRY', 'PARKED RETRY', 'DEAD RETRY'];
begin
  if old.state = new.state then
    return new;
  end if;
  if not step = any (case new.moved_by when 'operator' then by_operator else by_server end)
    or (new.moved_by = 'server' and old.state = 'UNCERTAIN' and new.lease_id is distinct from old.lease_id) then
    raise exception using errcode = 'HP014', constraint = 'outbox_action_step', message = 'an outbox action cannot go ' || step;
  end if;
  insert into outbox_step (action_id, from_state, to_state, reason, moved_by) values (new.id, old.state, new.state, new.reason, new.moved_by);
  return new;
end $$;

-- FUNCTION tree_erasures(uuid)

CREATE FUNCTION public.tree_erasures(conversation uuid) RETURNS bigint
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    AS $$
  select m.erasures from mentor_conversation c join mentor_conversation m on m.id = coalesce(c.parent_conversation_id, c.id) where c.id = conversation
$$;

-- FUNCTION turn_admission(uuid, uuid)

CREATE FUNCTION public.turn_admission(the_workspace uuid, the_account uuid) RETURNS json
    LANGUAGE sql STABLE
    AS $$
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

-- TABLE account

CREATE TABLE public.account (
    id uuid NOT NULL,
    display_name text NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    erasure_requested_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT account_display_name_check CHECK (((char_length(display_name) >= 1) AND (char_length(display_name) <= 200)))
);

-- TABLE account_identity

CREATE TABLE public.account_identity (
    issuer text NOT NULL,
    subject text NOT NULL,
    account_id uuid NOT NULL,
    email text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT account_identity_email_check CHECK (((char_length(email) >= 3) AND (char_length(email) <= 254))),
    CONSTRAINT account_identity_issuer_check CHECK (((char_length(issuer) >= 1) AND (char_length(issuer) <= 2000))),
    CONSTRAINT account_identity_subject_check CHECK (((char_length(subject) >= 1) AND (char_length(subject) <= 255)))
);

-- TABLE account_invitation

CREATE TABLE public.account_invitation (
    email text NOT NULL,
    account_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT account_invitation_email_check CHECK (((char_length(email) >= 3) AND (char_length(email) <= 254)))
);

-- TABLE agent_run

CREATE TABLE public.agent_run (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    kind text NOT NULL,
    conversation_id uuid NOT NULL,
    turn_id uuid,
    state text DEFAULT 'WAITING'::text NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    sandbox_id uuid,
    lease_until timestamp with time zone,
    deadline_at timestamp with time zone,
    bound_at timestamp with time zone,
    called_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    context_erasures bigint DEFAULT 0 NOT NULL,
    CONSTRAINT agent_run_ended CHECK (((state = 'ENDED'::text) = (ended_at IS NOT NULL))),
    CONSTRAINT agent_run_epoch_check CHECK ((epoch >= 0)),
    CONSTRAINT agent_run_kind CHECK (((kind = 'TURN'::text) = (turn_id IS NOT NULL))),
    CONSTRAINT agent_run_kind_check CHECK ((kind = ANY (ARRAY['TURN'::text, 'DIGEST'::text]))),
    CONSTRAINT agent_run_leased CHECK (((state = 'LEASED'::text) = ((lease_until IS NOT NULL) AND (deadline_at IS NOT NULL) AND (bound_at IS NOT NULL) AND (sandbox_id IS NOT NULL)))),
    CONSTRAINT agent_run_state_check CHECK ((state = ANY (ARRAY['WAITING'::text, 'LEASED'::text, 'ENDED'::text])))
)
WITH (fillfactor='80');

-- TABLE claim_pause

CREATE TABLE public.claim_pause (
    workspace_id uuid,
    reason text NOT NULL,
    operator text NOT NULL,
    paused_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT claim_pause_operator_check CHECK (((char_length(operator) >= 1) AND (char_length(operator) <= 100))),
    CONSTRAINT claim_pause_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 500)))
);

-- TABLE mentor_turn

CREATE TABLE public.mentor_turn (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    account_id uuid NOT NULL,
    question_entry_id uuid NOT NULL,
    question_seq bigint NOT NULL,
    request_id text NOT NULL,
    surface text NOT NULL,
    status text DEFAULT 'QUEUED'::text NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    page json,
    admission json,
    error_code text,
    error_text text,
    error_detail text,
    tools_loads smallint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    model_calls integer DEFAULT 0 NOT NULL,
    tools_loads_epoch integer DEFAULT 0 NOT NULL,
    CONSTRAINT mentor_turn_attempts CHECK (((attempt >= 0) AND (attempt <= 2))),
    CONSTRAINT mentor_turn_ended CHECK (((status = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text])) = (ended_at IS NULL))),
    CONSTRAINT mentor_turn_error CHECK (((status = 'FAILED'::text) = ((error_code IS NOT NULL) AND (error_text IS NOT NULL)))),
    CONSTRAINT mentor_turn_model_calls_check CHECK ((model_calls >= 0)),
    CONSTRAINT mentor_turn_request_id_check CHECK (((char_length(request_id) >= 1) AND (char_length(request_id) <= 128))),
    CONSTRAINT mentor_turn_started CHECK (((status <> 'RUNNING'::text) OR ((attempt > 0) AND (started_at IS NOT NULL)))),
    CONSTRAINT mentor_turn_status_check CHECK ((status = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text, 'DONE'::text, 'STOPPED'::text, 'FAILED'::text]))),
    CONSTRAINT mentor_turn_surface_check CHECK ((surface = ANY (ARRAY['app'::text, 'slack'::text])))
)
WITH (fillfactor='80');

-- VIEW claimable_turn

CREATE VIEW public.claimable_turn AS
 SELECT id,
    workspace_id,
    conversation_id,
    created_at,
    attempt
   FROM public.mentor_turn t
  WHERE ((status = 'QUEUED'::text) AND (NOT (EXISTS ( SELECT 1
           FROM public.mentor_turn e
          WHERE ((e.conversation_id = t.conversation_id) AND (e.status = 'QUEUED'::text) AND (e.question_seq < t.question_seq))))) AND (NOT (EXISTS ( SELECT 1
           FROM public.agent_run r
          WHERE ((r.conversation_id = t.conversation_id) AND (r.state = 'LEASED'::text))))) AND (NOT (EXISTS ( SELECT 1
           FROM public.claim_pause p
          WHERE (p.workspace_id IS NULL)))) AND (workspace_id <> ALL (ARRAY( SELECT p.workspace_id
           FROM public.claim_pause p
          WHERE (p.workspace_id IS NOT NULL)))));

-- TABLE turn_slot

CREATE TABLE public.turn_slot (
    slot_no integer NOT NULL,
    run_id uuid,
    retiring boolean DEFAULT false NOT NULL,
    CONSTRAINT turn_slot_slot_no_check CHECK ((slot_no > 0))
);

-- VIEW claim_order

CREATE VIEW public.claim_order AS
 WITH claimable AS (
         SELECT claimable_turn.id,
            claimable_turn.workspace_id,
            claimable_turn.conversation_id,
            claimable_turn.created_at,
            claimable_turn.attempt
           FROM public.claimable_turn
        ), held AS (
         SELECT r.workspace_id,
            count(*) AS slots
           FROM (public.turn_slot s_1
             JOIN public.agent_run r ON ((r.id = s_1.run_id)))
          GROUP BY r.workspace_id
        ), served AS (
         SELECT w.workspace_id,
            ( SELECT max(t.started_at) AS max
                   FROM public.mentor_turn t
                  WHERE ((t.workspace_id = w.workspace_id) AND (t.started_at IS NOT NULL))) AS served_at
           FROM ( SELECT DISTINCT claimable.workspace_id
                   FROM claimable) w
        ), share AS (
         SELECT t.id,
            t.workspace_id,
            t.conversation_id,
            t.created_at,
            t.attempt,
            s_1.served_at,
            (COALESCE(h.slots, (0)::bigint) + row_number() OVER (PARTITION BY t.workspace_id ORDER BY t.created_at, t.id)) AS turn_of_workspace
           FROM ((claimable t
             JOIN served s_1 USING (workspace_id))
             LEFT JOIN held h USING (workspace_id))
        )
 SELECT id,
    workspace_id,
    conversation_id,
    created_at,
    row_number() OVER (ORDER BY turn_of_workspace, served_at NULLS FIRST, created_at, id) AS rank
   FROM share s;

-- TABLE installation

CREATE TABLE public.installation (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    only_one boolean DEFAULT true NOT NULL,
    CONSTRAINT installation_only_one_check CHECK (only_one)
);

-- TABLE llm_binding

CREATE TABLE public.llm_binding (
    purpose text NOT NULL,
    workspace_id uuid,
    source text NOT NULL,
    model_id uuid NOT NULL,
    timeout_ms integer NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT llm_binding_environment CHECK (((source = 'admin'::text) OR (workspace_id IS NULL))),
    CONSTRAINT llm_binding_purpose_check CHECK ((purpose = 'conversation'::text)),
    CONSTRAINT llm_binding_source_check CHECK ((source = ANY (ARRAY['environment'::text, 'admin'::text]))),
    CONSTRAINT llm_binding_timeout_ms_check CHECK (((timeout_ms >= 1) AND (timeout_ms <= 900000)))
);

-- TABLE llm_budget

CREATE TABLE public.llm_budget (
    workspace_id uuid,
    monthly_limit numeric NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT llm_budget_monthly_limit_check CHECK ((monthly_limit >= (0)::numeric))
);

-- TABLE llm_connection

CREATE TABLE public.llm_connection (
    id uuid NOT NULL,
    name text NOT NULL,
    api text NOT NULL,
    base_url text,
    api_key_sealed bytea,
    source text NOT NULL,
    paused_until timestamp with time zone,
    disabled_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT llm_connection_api_check CHECK ((api = ANY (ARRAY['openai-completions'::text, 'openai-responses'::text, 'anthropic-messages'::text]))),
    CONSTRAINT llm_connection_base_url_check CHECK (((char_length(base_url) >= 1) AND (char_length(base_url) <= 2000))),
    CONSTRAINT llm_connection_built_in CHECK (((base_url IS NULL) = (name = 'demo'::text))),
    CONSTRAINT llm_connection_environment_key CHECK (((source = 'admin'::text) OR (api_key_sealed IS NULL))),
    CONSTRAINT llm_connection_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9-]{0,62}$'::text)),
    CONSTRAINT llm_connection_source CHECK (((source = 'environment'::text) = (name = ANY (ARRAY['environment'::text, 'demo'::text])))),
    CONSTRAINT llm_connection_source_check CHECK ((source = ANY (ARRAY['environment'::text, 'admin'::text])))
);

-- TABLE llm_model

CREATE TABLE public.llm_model (
    id uuid NOT NULL,
    connection_id uuid NOT NULL,
    name text NOT NULL,
    provider_model text NOT NULL,
    context_tokens integer NOT NULL,
    output_tokens integer NOT NULL,
    price_kind text NOT NULL,
    price_note text,
    input_price numeric,
    output_price numeric,
    cache_read_price numeric,
    cache_write_price numeric,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT llm_model_cache_read_price_check CHECK ((cache_read_price >= (0)::numeric)),
    CONSTRAINT llm_model_cache_write_price_check CHECK ((cache_write_price >= (0)::numeric)),
    CONSTRAINT llm_model_context_tokens_check CHECK ((context_tokens > 0)),
    CONSTRAINT llm_model_input_price_check CHECK ((input_price >= (0)::numeric)),
    CONSTRAINT llm_model_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9.-]{0,62}$'::text)),
    CONSTRAINT llm_model_no_charge CHECK (((price_kind = 'NO_CHARGE'::text) = (price_note IS NOT NULL))),
    CONSTRAINT llm_model_output_price_check CHECK ((output_price >= (0)::numeric)),
    CONSTRAINT llm_model_output_tokens_check CHECK ((output_tokens > 0)),
    CONSTRAINT llm_model_price_kind_check CHECK ((price_kind = ANY (ARRAY['PRICED'::text, 'NO_CHARGE'::text, 'UNPRICED'::text]))),
    CONSTRAINT llm_model_price_note_check CHECK (((char_length(price_note) >= 1) AND (char_length(price_note) <= 500))),
    CONSTRAINT llm_model_priced CHECK ((((price_kind = 'PRICED'::text) = ((input_price IS NOT NULL) AND (output_price IS NOT NULL))) AND ((price_kind = 'PRICED'::text) OR (num_nonnulls(input_price, output_price, cache_read_price, cache_write_price) = 0)))),
    CONSTRAINT llm_model_provider_model_check CHECK (((char_length(provider_model) >= 1) AND (char_length(provider_model) <= 200)))
);

-- TABLE llm_spend

CREATE TABLE public.llm_spend (
    month date NOT NULL,
    workspace_id uuid NOT NULL,
    cost numeric NOT NULL,
    CONSTRAINT llm_spend_cost_check CHECK ((cost >= (0)::numeric))
);

-- TABLE llm_usage_event

CREATE TABLE public.llm_usage_event (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    run_id uuid NOT NULL,
    epoch integer NOT NULL,
    attempt smallint NOT NULL,
    api text NOT NULL,
    model text NOT NULL,
    state text DEFAULT 'OPEN'::text NOT NULL,
    outcome text,
    http_status smallint,
    input_tokens bigint,
    output_tokens bigint,
    cache_read_tokens bigint,
    cache_write_tokens bigint,
    opened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    closed_at timestamp with time zone,
    connection_id uuid,
    model_id uuid,
    price_kind text,
    input_price numeric,
    output_price numeric,
    cache_read_price numeric,
    cache_write_price numeric,
    cost numeric,
    host_id uuid,
    CONSTRAINT llm_usage_event_cache_read_tokens_check CHECK ((cache_read_tokens >= 0)),
    CONSTRAINT llm_usage_event_cache_write_tokens_check CHECK ((cache_write_tokens >= 0)),
    CONSTRAINT llm_usage_event_closed CHECK (((state = 'CLOSED'::text) = ((closed_at IS NOT NULL) AND (outcome IS NOT NULL)))),
    CONSTRAINT llm_usage_event_cost_check CHECK ((cost >= (0)::numeric)),
    CONSTRAINT llm_usage_event_input_tokens_check CHECK ((input_tokens >= 0)),
    CONSTRAINT llm_usage_event_output_tokens_check CHECK ((output_tokens >= 0)),
    CONSTRAINT llm_usage_event_price_kind_check CHECK ((price_kind = ANY (ARRAY['PRICED'::text, 'NO_CHARGE'::text, 'UNPRICED'::text]))),
    CONSTRAINT llm_usage_event_state_check CHECK ((state = ANY (ARRAY['OPEN'::text, 'CLOSED'::text])))
);

-- TABLE mentor_conversation

CREATE TABLE public.mentor_conversation (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    account_id uuid NOT NULL,
    parent_conversation_id uuid,
    parent_entry_id uuid,
    version bigint DEFAULT 0 NOT NULL,
    last_seq bigint DEFAULT 0 NOT NULL,
    last_answer_at timestamp with time zone,
    last_read_at timestamp with time zone,
    slack_team_id text,
    slack_user_id text,
    slack_channel_id text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    erasures bigint DEFAULT 0 NOT NULL,
    request_id text,
    forked_seq bigint,
    CONSTRAINT mentor_conversation_request CHECK (((request_id IS NULL) OR (parent_conversation_id IS NOT NULL))),
    CONSTRAINT mentor_conversation_request_id_check CHECK (((char_length(request_id) >= 1) AND (char_length(request_id) <= 128))),
    CONSTRAINT mentor_conversation_slack CHECK (((parent_conversation_id IS NULL) OR (slack_team_id IS NULL))),
    CONSTRAINT mentor_conversation_thread CHECK (((parent_conversation_id IS NULL) = (parent_entry_id IS NULL)))
)
WITH (fillfactor='80');

-- TABLE mentor_entry

CREATE TABLE public.mentor_entry (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    turn_id uuid,
    seq bigint NOT NULL,
    kind text NOT NULL,
    surface text NOT NULL,
    text text,
    payload json,
    search_text text,
    from_seq bigint,
    to_seq bigint,
    vote smallint,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    erased_at timestamp with time zone,
    search_vector tsvector GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, public.mentor_search_words(search_text))) STORED,
    source_entry_ids uuid[],
    edited_at timestamp with time zone,
    CONSTRAINT mentor_entry_erased CHECK (((erased_at IS NULL) OR ((text IS NULL) AND (search_text IS NULL)))),
    CONSTRAINT mentor_entry_erased_payload CHECK (((erased_at IS NULL) OR (payload IS NULL) OR (kind = ANY (ARRAY['ANSWER'::text, 'TOOL_RESULT'::text])))),
    CONSTRAINT mentor_entry_kind_check CHECK ((kind = ANY (ARRAY['QUESTION'::text, 'ANSWER'::text, 'TOOL_RESULT'::text, 'SYSTEM'::text, 'SUMMARY'::text, 'EDIT'::text, 'DIGEST'::text]))),
    CONSTRAINT mentor_entry_seq_check CHECK ((seq > 0)),
    CONSTRAINT mentor_entry_sources CHECK (((source_entry_ids IS NULL) OR ((kind = 'TOOL_RESULT'::text) AND (erased_at IS NULL)))),
    CONSTRAINT mentor_entry_summary CHECK (((kind = 'SUMMARY'::text) OR ((from_seq IS NULL) AND (to_seq IS NULL)))),
    CONSTRAINT mentor_entry_surface_check CHECK ((surface = ANY (ARRAY['app'::text, 'slack'::text]))),
    CONSTRAINT mentor_entry_vote_check CHECK ((vote = ANY (ARRAY['-1'::integer, 1])))
);

-- TABLE mentor_path

CREATE TABLE public.mentor_path (
    turn_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    question_seq bigint NOT NULL,
    read_at timestamp with time zone NOT NULL,
    time_zone text NOT NULL,
    summary_id uuid,
    system_hash bytea NOT NULL,
    entries bytea NOT NULL,
    CONSTRAINT mentor_path_entries_check CHECK (((octet_length(entries) % 32) = 0)),
    CONSTRAINT mentor_path_system_hash_check CHECK ((octet_length(system_hash) = 8))
);

-- TABLE operator_action

CREATE TABLE public.operator_action (
    id uuid NOT NULL,
    idempotency_key text NOT NULL,
    operator text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    reason text NOT NULL,
    state text DEFAULT 'BEGUN'::text NOT NULL,
    state_before json NOT NULL,
    state_after json,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT operator_action_action_check CHECK ((action = ANY (ARRAY['stop'::text, 'requeue'::text, 'skip'::text, 'pause-claims'::text, 'resume-claims'::text, 'drain'::text]))),
    CONSTRAINT operator_action_done CHECK (((state = 'DONE'::text) = ((finished_at IS NOT NULL) AND (state_after IS NOT NULL)))),
    CONSTRAINT operator_action_idempotency_key_check CHECK (((char_length(idempotency_key) >= 1) AND (char_length(idempotency_key) <= 128))),
    CONSTRAINT operator_action_operator_check CHECK (((char_length(operator) >= 1) AND (char_length(operator) <= 100))),
    CONSTRAINT operator_action_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 500))),
    CONSTRAINT operator_action_state_check CHECK ((state = ANY (ARRAY['BEGUN'::text, 'DONE'::text]))),
    CONSTRAINT operator_action_target_check CHECK (((char_length(target) >= 1) AND (char_length(target) <= 200)))
);

-- TABLE outbox_action

CREATE TABLE public.outbox_action (
    id uuid NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    workspace_id uuid NOT NULL,
    team_id text NOT NULL,
    channel_id text NOT NULL,
    thread_ts text NOT NULL,
    turn_id uuid,
    notice text,
    user_id text,
    event_id text,
    state text DEFAULT 'PENDING'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    reads integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    lease_id uuid,
    lease_until timestamp with time zone,
    started_at timestamp with time zone,
    message_ts text,
    reason text,
    moved_by text DEFAULT 'server'::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT outbox_action_due CHECK (((state <> ALL (ARRAY['PENDING'::text, 'RETRY'::text])) OR (due_at IS NOT NULL))),
    CONSTRAINT outbox_action_ended CHECK (((state = ANY (ARRAY['SENT'::text, 'DEAD'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT outbox_action_kind CHECK ((((kind = 'SLACK_POST'::text) = (turn_id IS NOT NULL)) AND ((kind = 'SLACK_NOTICE'::text) = ((notice IS NOT NULL) AND (event_id IS NOT NULL))))),
    CONSTRAINT outbox_action_kind_check CHECK ((kind = ANY (ARRAY['SLACK_POST'::text, 'SLACK_NOTICE'::text]))),
    CONSTRAINT outbox_action_moved_by_check CHECK ((moved_by = ANY (ARRAY['server'::text, 'operator'::text]))),
    CONSTRAINT outbox_action_sending CHECK (((state <> 'SENDING'::text) OR ((lease_id IS NOT NULL) AND (lease_until IS NOT NULL) AND (started_at IS NOT NULL)))),
    CONSTRAINT outbox_action_state_check CHECK ((state = ANY (ARRAY['PENDING'::text, 'SENDING'::text, 'SENT'::text, 'RETRY'::text, 'UNCERTAIN'::text, 'PARKED'::text, 'DEAD'::text])))
);

-- SEQUENCE outbox_action_seq_seq

ALTER TABLE public.outbox_action ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_action_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- TABLE outbox_step

CREATE TABLE public.outbox_step (
    action_id uuid NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    from_state text NOT NULL,
    to_state text NOT NULL,
    reason text,
    moved_by text NOT NULL
);

-- TABLE repository

CREATE TABLE public.repository (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    name text NOT NULL,
    clone_url text NOT NULL,
    chosen_branch text,
    remote_branch text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    seen_at timestamp with time zone,
    CONSTRAINT repository_chosen_branch_check CHECK (((char_length(chosen_branch) >= 1) AND (char_length(chosen_branch) <= 200))),
    CONSTRAINT repository_clone_url_check CHECK (((char_length(clone_url) >= 1) AND (char_length(clone_url) <= 2000))),
    CONSTRAINT repository_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'::text)),
    CONSTRAINT repository_remote_branch_check CHECK (((char_length(remote_branch) >= 1) AND (char_length(remote_branch) <= 200)))
);

-- TABLE repository_request

CREATE TABLE public.repository_request (
    repository_id uuid NOT NULL,
    number integer NOT NULL,
    ref text NOT NULL,
    CONSTRAINT repository_request_number_check CHECK ((number > 0)),
    CONSTRAINT repository_request_ref_check CHECK (((char_length(ref) >= 1) AND (char_length(ref) <= 200)))
);

-- TABLE sandbox

CREATE TABLE public.sandbox (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    host_id uuid CONSTRAINT sandbox_host_id_not_null1 NOT NULL,
    credential_hash bytea NOT NULL,
    state text DEFAULT 'STARTING'::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    start_failed boolean DEFAULT false NOT NULL,
    outlives_host boolean DEFAULT false NOT NULL,
    CONSTRAINT sandbox_credential_hash_check CHECK ((octet_length(credential_hash) = 32)),
    CONSTRAINT sandbox_ended CHECK (((state = 'ENDED'::text) = (ended_at IS NOT NULL))),
    CONSTRAINT sandbox_start_failed CHECK (((NOT start_failed) OR (state = 'ENDED'::text))),
    CONSTRAINT sandbox_state_check CHECK ((state = ANY (ARRAY['STARTING'::text, 'READY'::text, 'ENDED'::text])))
);

-- TABLE sandbox_host

CREATE TABLE public.sandbox_host (
    id uuid NOT NULL,
    name text NOT NULL,
    lock_key bigint NOT NULL,
    capacity_turns integer,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    suspected_at timestamp with time zone,
    ended_at timestamp with time zone,
    sandboxes_max integer DEFAULT 1 NOT NULL,
    build text,
    draining_at timestamp with time zone,
    CONSTRAINT sandbox_host_build_check CHECK (((char_length(build) >= 1) AND (char_length(build) <= 100))),
    CONSTRAINT sandbox_host_capacity_turns_check CHECK ((capacity_turns >= 0)),
    CONSTRAINT sandbox_host_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
    CONSTRAINT sandbox_host_sandboxes_max_check CHECK ((sandboxes_max >= 0))
);

-- TABLE sign_in_attempt

CREATE TABLE public.sign_in_attempt (
    state_hash bytea NOT NULL,
    browser_hash bytea NOT NULL,
    return_path text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    CONSTRAINT sign_in_attempt_browser_hash_check CHECK ((octet_length(browser_hash) = 32)),
    CONSTRAINT sign_in_attempt_return_path_check CHECK (((return_path ~ '^/([^/\\]|$)'::text) AND (char_length(return_path) <= 2000))),
    CONSTRAINT sign_in_attempt_state_hash_check CHECK ((octet_length(state_hash) = 32))
);

-- TABLE slack_connection

CREATE TABLE public.slack_connection (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    team_id text NOT NULL,
    bot_user_id text NOT NULL,
    bot_token_sealed bytea,
    state text DEFAULT 'ACTIVE'::text NOT NULL,
    why text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    post_after timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    read_after timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT slack_connection_bot_user_id_check CHECK (((char_length(bot_user_id) >= 1) AND (char_length(bot_user_id) <= 30))),
    CONSTRAINT slack_connection_ended CHECK (((state = 'ENDED'::text) = (ended_at IS NOT NULL))),
    CONSTRAINT slack_connection_state_check CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'ENDING'::text, 'ENDED'::text]))),
    CONSTRAINT slack_connection_team_id_check CHECK ((team_id ~ '^[A-Z0-9]{1,30}$'::text)),
    CONSTRAINT slack_connection_token CHECK (((state = 'ACTIVE'::text) = (bot_token_sealed IS NOT NULL)))
);

-- TABLE slack_event

CREATE TABLE public.slack_event (
    team_id text NOT NULL,
    event_id text NOT NULL,
    seq bigint NOT NULL,
    channel_id text DEFAULT ''::text NOT NULL,
    deleted_ts text,
    payload json,
    tries smallint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone,
    outcome text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    done_at timestamp with time zone,
    CONSTRAINT slack_event_done CHECK ((((done_at IS NULL) = (payload IS NOT NULL)) AND ((done_at IS NULL) = (outcome IS NULL)))),
    CONSTRAINT slack_event_event_id_check CHECK (((char_length(event_id) >= 1) AND (char_length(event_id) <= 60)))
);

-- SEQUENCE slack_event_seq_seq

ALTER TABLE public.slack_event ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.slack_event_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- TABLE slack_identity

CREATE TABLE public.slack_identity (
    team_id text NOT NULL,
    user_id text NOT NULL,
    account_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT slack_identity_user_id_check CHECK (((char_length(user_id) >= 1) AND (char_length(user_id) <= 30)))
);

-- TABLE slack_turn

CREATE TABLE public.slack_turn (
    turn_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    team_id text NOT NULL,
    channel_id text NOT NULL,
    message_ts text NOT NULL,
    thread_ts text NOT NULL,
    CONSTRAINT slack_turn_channel_id_check CHECK (((char_length(channel_id) >= 1) AND (char_length(channel_id) <= 30))),
    CONSTRAINT slack_turn_message_ts_check CHECK (((char_length(message_ts) >= 1) AND (char_length(message_ts) <= 30))),
    CONSTRAINT slack_turn_thread_ts_check CHECK (((char_length(thread_ts) >= 1) AND (char_length(thread_ts) <= 30)))
);

-- TABLE waiting_pull

CREATE UNLOGGED TABLE public.waiting_pull (
    host_id uuid NOT NULL,
    turn_ids uuid[] NOT NULL,
    sandbox_ids uuid[] NOT NULL,
    open_until timestamp with time zone NOT NULL,
    CONSTRAINT waiting_pull_pairs CHECK ((cardinality(turn_ids) = cardinality(sandbox_ids)))
)
WITH (fillfactor='50');

-- TABLE web_session

CREATE TABLE public.web_session (
    id_hash bytea NOT NULL,
    account_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    last_moment_at timestamp with time zone NOT NULL,
    CONSTRAINT web_session_bounded CHECK ((ends_at <= last_moment_at)),
    CONSTRAINT web_session_id_hash_check CHECK ((octet_length(id_hash) = 32))
);

-- TABLE workspace

CREATE TABLE public.workspace (
    id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT workspace_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
    CONSTRAINT workspace_slug_check CHECK ((slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'::text))
);

-- TABLE workspace_member

CREATE TABLE public.workspace_member (
    workspace_id uuid NOT NULL,
    account_id uuid NOT NULL,
    role text DEFAULT 'member'::text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    visible boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ai_allowed boolean DEFAULT true NOT NULL,
    CONSTRAINT workspace_member_role_check CHECK ((role = ANY (ARRAY['member'::text, 'admin'::text, 'operator'::text])))
);

-- CONSTRAINT account_identity account_identity_pk

ALTER TABLE ONLY public.account_identity
    ADD CONSTRAINT account_identity_pk PRIMARY KEY (issuer, subject);

-- CONSTRAINT account_invitation account_invitation_account_id_key

ALTER TABLE ONLY public.account_invitation
    ADD CONSTRAINT account_invitation_account_id_key UNIQUE (account_id);

-- CONSTRAINT account_invitation account_invitation_pkey

ALTER TABLE ONLY public.account_invitation
    ADD CONSTRAINT account_invitation_pkey PRIMARY KEY (email);

-- CONSTRAINT account account_pkey

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);

-- CONSTRAINT agent_run agent_run_pkey

ALTER TABLE ONLY public.agent_run
    ADD CONSTRAINT agent_run_pkey PRIMARY KEY (id);

-- CONSTRAINT installation installation_only_one_key

ALTER TABLE ONLY public.installation
    ADD CONSTRAINT installation_only_one_key UNIQUE (only_one);

-- CONSTRAINT installation installation_pkey

ALTER TABLE ONLY public.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (id);

-- CONSTRAINT llm_connection llm_connection_name_key

ALTER TABLE ONLY public.llm_connection
    ADD CONSTRAINT llm_connection_name_key UNIQUE (name);

-- CONSTRAINT llm_connection llm_connection_pkey

ALTER TABLE ONLY public.llm_connection
    ADD CONSTRAINT llm_connection_pkey PRIMARY KEY (id);

-- CONSTRAINT llm_model llm_model_name_key

ALTER TABLE ONLY public.llm_model
    ADD CONSTRAINT llm_model_name_key UNIQUE (name);

-- CONSTRAINT llm_model llm_model_pkey

ALTER TABLE ONLY public.llm_model
    ADD CONSTRAINT llm_model_pkey PRIMARY KEY (id);

-- CONSTRAINT llm_spend llm_spend_pkey

ALTER TABLE ONLY public.llm_spend
    ADD CONSTRAINT llm_spend_pkey PRIMARY KEY (month, workspace_id);

-- CONSTRAINT llm_usage_event llm_usage_event_pkey

ALTER TABLE ONLY public.llm_usage_event
    ADD CONSTRAINT llm_usage_event_pkey PRIMARY KEY (id);

-- CONSTRAINT mentor_conversation mentor_conversation_pkey

ALTER TABLE ONLY public.mentor_conversation
    ADD CONSTRAINT mentor_conversation_pkey PRIMARY KEY (id);

-- CONSTRAINT mentor_entry mentor_entry_pkey

ALTER TABLE ONLY public.mentor_entry
    ADD CONSTRAINT mentor_entry_pkey PRIMARY KEY (id);

-- CONSTRAINT mentor_path mentor_path_pkey

ALTER TABLE ONLY public.mentor_path
    ADD CONSTRAINT mentor_path_pkey PRIMARY KEY (turn_id);

-- CONSTRAINT mentor_turn mentor_turn_pkey

ALTER TABLE ONLY public.mentor_turn
    ADD CONSTRAINT mentor_turn_pkey PRIMARY KEY (id);

-- CONSTRAINT operator_action operator_action_pkey

ALTER TABLE ONLY public.operator_action
    ADD CONSTRAINT operator_action_pkey PRIMARY KEY (id);

-- CONSTRAINT outbox_action outbox_action_pkey

ALTER TABLE ONLY public.outbox_action
    ADD CONSTRAINT outbox_action_pkey PRIMARY KEY (id);

-- CONSTRAINT repository repository_pkey

ALTER TABLE ONLY public.repository
    ADD CONSTRAINT repository_pkey PRIMARY KEY (id);

-- CONSTRAINT repository_request repository_request_pkey

ALTER TABLE ONLY public.repository_request
    ADD CONSTRAINT repository_request_pkey PRIMARY KEY (repository_id, number);

-- CONSTRAINT sandbox sandbox_credential_hash_key

ALTER TABLE ONLY public.sandbox
    ADD CONSTRAINT sandbox_credential_hash_key UNIQUE (credential_hash);

-- CONSTRAINT sandbox_host sandbox_host_lock_key_key

ALTER TABLE ONLY public.sandbox_host
    ADD CONSTRAINT sandbox_host_lock_key_key UNIQUE (lock_key);

-- CONSTRAINT sandbox_host sandbox_host_pkey

ALTER TABLE ONLY public.sandbox_host
    ADD CONSTRAINT sandbox_host_pkey PRIMARY KEY (id);

-- CONSTRAINT sandbox sandbox_pkey

ALTER TABLE ONLY public.sandbox
    ADD CONSTRAINT sandbox_pkey PRIMARY KEY (id);

-- CONSTRAINT sign_in_attempt sign_in_attempt_pkey

ALTER TABLE ONLY public.sign_in_attempt
    ADD CONSTRAINT sign_in_attempt_pkey PRIMARY KEY (state_hash);

-- CONSTRAINT slack_connection slack_connection_pkey

ALTER TABLE ONLY public.slack_connection
    ADD CONSTRAINT slack_connection_pkey PRIMARY KEY (id);

-- CONSTRAINT slack_event slack_event_pk

ALTER TABLE ONLY public.slack_event
    ADD CONSTRAINT slack_event_pk PRIMARY KEY (team_id, event_id);

-- CONSTRAINT slack_identity slack_identity_pk

ALTER TABLE ONLY public.slack_identity
    ADD CONSTRAINT slack_identity_pk PRIMARY KEY (team_id, user_id);

-- CONSTRAINT slack_turn slack_turn_pkey

ALTER TABLE ONLY public.slack_turn
    ADD CONSTRAINT slack_turn_pkey PRIMARY KEY (turn_id);

-- CONSTRAINT turn_slot turn_slot_pkey

ALTER TABLE ONLY public.turn_slot
    ADD CONSTRAINT turn_slot_pkey PRIMARY KEY (slot_no);

-- CONSTRAINT account_identity ux_account_identity_email

ALTER TABLE ONLY public.account_identity
    ADD CONSTRAINT ux_account_identity_email UNIQUE (email);

-- CONSTRAINT agent_run ux_agent_run_turn

ALTER TABLE ONLY public.agent_run
    ADD CONSTRAINT ux_agent_run_turn UNIQUE (turn_id);

-- CONSTRAINT agent_run ux_agent_run_workspace

ALTER TABLE ONLY public.agent_run
    ADD CONSTRAINT ux_agent_run_workspace UNIQUE (id, workspace_id);

-- CONSTRAINT claim_pause ux_claim_pause

ALTER TABLE ONLY public.claim_pause
    ADD CONSTRAINT ux_claim_pause UNIQUE NULLS NOT DISTINCT (workspace_id);

-- CONSTRAINT llm_binding ux_llm_binding

ALTER TABLE ONLY public.llm_binding
    ADD CONSTRAINT ux_llm_binding UNIQUE NULLS NOT DISTINCT (purpose, workspace_id, source);

-- CONSTRAINT llm_budget ux_llm_budget

ALTER TABLE ONLY public.llm_budget
    ADD CONSTRAINT ux_llm_budget UNIQUE NULLS NOT DISTINCT (workspace_id);

-- CONSTRAINT mentor_conversation ux_mentor_conversation_workspace

ALTER TABLE ONLY public.mentor_conversation
    ADD CONSTRAINT ux_mentor_conversation_workspace UNIQUE (id, workspace_id);

-- CONSTRAINT mentor_entry ux_mentor_entry_seq

ALTER TABLE ONLY public.mentor_entry
    ADD CONSTRAINT ux_mentor_entry_seq UNIQUE (conversation_id, seq);

-- CONSTRAINT mentor_entry ux_mentor_entry_workspace

ALTER TABLE ONLY public.mentor_entry
    ADD CONSTRAINT ux_mentor_entry_workspace UNIQUE (id, workspace_id);

-- CONSTRAINT mentor_turn ux_mentor_turn_question

ALTER TABLE ONLY public.mentor_turn
    ADD CONSTRAINT ux_mentor_turn_question UNIQUE (conversation_id, question_seq);

-- CONSTRAINT mentor_turn ux_mentor_turn_request

ALTER TABLE ONLY public.mentor_turn
    ADD CONSTRAINT ux_mentor_turn_request UNIQUE (request_id, account_id, workspace_id, surface);

-- CONSTRAINT mentor_turn ux_mentor_turn_workspace

ALTER TABLE ONLY public.mentor_turn
    ADD CONSTRAINT ux_mentor_turn_workspace UNIQUE (id, workspace_id);

-- CONSTRAINT operator_action ux_operator_action_key

ALTER TABLE ONLY public.operator_action
    ADD CONSTRAINT ux_operator_action_key UNIQUE (idempotency_key);

-- CONSTRAINT outbox_action ux_outbox_action_event

ALTER TABLE ONLY public.outbox_action
    ADD CONSTRAINT ux_outbox_action_event UNIQUE (team_id, event_id);

-- CONSTRAINT outbox_action ux_outbox_action_turn

ALTER TABLE ONLY public.outbox_action
    ADD CONSTRAINT ux_outbox_action_turn UNIQUE (turn_id);

-- CONSTRAINT repository ux_repository_name

ALTER TABLE ONLY public.repository
    ADD CONSTRAINT ux_repository_name UNIQUE (workspace_id, name);

-- CONSTRAINT sandbox ux_sandbox_workspace

ALTER TABLE ONLY public.sandbox
    ADD CONSTRAINT ux_sandbox_workspace UNIQUE (id, workspace_id);

-- CONSTRAINT slack_turn ux_slack_turn_message

ALTER TABLE ONLY public.slack_turn
    ADD CONSTRAINT ux_slack_turn_message UNIQUE (team_id, channel_id, message_ts);

-- CONSTRAINT turn_slot ux_turn_slot_run

ALTER TABLE ONLY public.turn_slot
    ADD CONSTRAINT ux_turn_slot_run UNIQUE (run_id);

-- CONSTRAINT waiting_pull waiting_pull_pkey

ALTER TABLE ONLY public.waiting_pull
    ADD CONSTRAINT waiting_pull_pkey PRIMARY KEY (host_id);

-- CONSTRAINT web_session web_session_pkey

ALTER TABLE ONLY public.web_session
    ADD CONSTRAINT web_session_pkey PRIMARY KEY (id_hash);

-- CONSTRAINT workspace_member workspace_member_pkey

ALTER TABLE ONLY public.workspace_member
    ADD CONSTRAINT workspace_member_pkey PRIMARY KEY (workspace_id, account_id);

-- CONSTRAINT workspace workspace_pkey

ALTER TABLE ONLY public.workspace
    ADD CONSTRAINT workspace_pkey PRIMARY KEY (id);

-- CONSTRAINT workspace workspace_slug_key

ALTER TABLE ONLY public.workspace
    ADD CONSTRAINT workspace_slug_key UNIQUE (slug);

-- INDEX ix_account_identity_account

CREATE INDEX ix_account_identity_account ON public.account_identity USING btree (account_id);

-- INDEX ix_agent_run_lease

CREATE INDEX ix_agent_run_lease ON public.agent_run USING btree (lease_until) WHERE (state = 'LEASED'::text);

-- INDEX ix_llm_usage_event_open

CREATE INDEX ix_llm_usage_event_open ON public.llm_usage_event USING btree (opened_at) WHERE (state = 'OPEN'::text);

-- INDEX ix_llm_usage_event_opened

CREATE INDEX ix_llm_usage_event_opened ON public.llm_usage_event USING brin (opened_at);

-- INDEX ix_llm_usage_event_turn

CREATE INDEX ix_llm_usage_event_turn ON public.llm_usage_event USING btree (turn_id);

-- INDEX ix_llm_usage_event_unknown_cost

CREATE INDEX ix_llm_usage_event_unknown_cost ON public.llm_usage_event USING btree (opened_at) WHERE ((state = 'CLOSED'::text) AND (cost IS NULL));

-- INDEX ix_mentor_conversation_threads

CREATE INDEX ix_mentor_conversation_threads ON public.mentor_conversation USING btree (parent_conversation_id, created_at DESC) WHERE (parent_conversation_id IS NOT NULL);

-- INDEX ix_mentor_entry_outside

CREATE INDEX ix_mentor_entry_outside ON public.mentor_entry USING btree (conversation_id, seq) WHERE (turn_id IS NULL);

-- INDEX ix_mentor_entry_slack

CREATE INDEX ix_mentor_entry_slack ON public.mentor_entry USING btree (workspace_id) WHERE ((surface = 'slack'::text) AND (erased_at IS NULL));

-- INDEX ix_mentor_entry_sources

CREATE INDEX ix_mentor_entry_sources ON public.mentor_entry USING gin (source_entry_ids) WHERE (source_entry_ids IS NOT NULL);

-- INDEX ix_mentor_entry_summary

CREATE INDEX ix_mentor_entry_summary ON public.mentor_entry USING btree (conversation_id, seq) WHERE ((kind = 'SUMMARY'::text) AND (erased_at IS NULL));

-- INDEX ix_mentor_entry_text_search

CREATE INDEX ix_mentor_entry_text_search ON public.mentor_entry USING gin (search_vector);

-- INDEX ix_mentor_entry_turn

CREATE INDEX ix_mentor_entry_turn ON public.mentor_entry USING btree (turn_id);

-- INDEX ix_mentor_path_conversation

CREATE INDEX ix_mentor_path_conversation ON public.mentor_path USING btree (conversation_id, question_seq);

-- INDEX ix_mentor_turn_failed

CREATE INDEX ix_mentor_turn_failed ON public.mentor_turn USING btree (ended_at) WHERE (status = 'FAILED'::text);

-- INDEX ix_mentor_turn_queued

CREATE INDEX ix_mentor_turn_queued ON public.mentor_turn USING btree (conversation_id, question_seq) WHERE (status = 'QUEUED'::text);

-- INDEX ix_mentor_turn_served

CREATE INDEX ix_mentor_turn_served ON public.mentor_turn USING btree (workspace_id, started_at) WHERE (started_at IS NOT NULL);

-- INDEX ix_operator_action_target

CREATE INDEX ix_operator_action_target ON public.operator_action USING btree (target);

-- INDEX ix_outbox_action_open

CREATE INDEX ix_outbox_action_open ON public.outbox_action USING btree (team_id, channel_id, seq) WHERE (state = ANY (ARRAY['PENDING'::text, 'RETRY'::text, 'SENDING'::text, 'UNCERTAIN'::text]));

-- INDEX ix_outbox_action_pace

CREATE INDEX ix_outbox_action_pace ON public.outbox_action USING btree (team_id, channel_id, started_at);

-- INDEX ix_outbox_step_action

CREATE INDEX ix_outbox_step_action ON public.outbox_step USING btree (action_id, at);

-- INDEX ix_sandbox_conversation

CREATE INDEX ix_sandbox_conversation ON public.sandbox USING btree (conversation_id, created_at);

-- INDEX ix_sandbox_host

CREATE INDEX ix_sandbox_host ON public.sandbox USING btree (host_id) WHERE (state <> 'ENDED'::text);

-- INDEX ix_sandbox_outlives

CREATE INDEX ix_sandbox_outlives ON public.sandbox USING btree (host_id) WHERE (outlives_host AND (state <> 'ENDED'::text));

-- INDEX ix_sandbox_start_failed

CREATE INDEX ix_sandbox_start_failed ON public.sandbox USING btree (conversation_id, created_at) WHERE start_failed;

-- INDEX ix_sign_in_attempt_browser

CREATE INDEX ix_sign_in_attempt_browser ON public.sign_in_attempt USING btree (browser_hash);

-- INDEX ix_sign_in_attempt_created

CREATE INDEX ix_sign_in_attempt_created ON public.sign_in_attempt USING btree (created_at);

-- INDEX ix_slack_event_created

CREATE INDEX ix_slack_event_created ON public.slack_event USING btree (created_at);

-- INDEX ix_slack_event_deleted

CREATE INDEX ix_slack_event_deleted ON public.slack_event USING btree (team_id, channel_id, deleted_ts) WHERE (deleted_ts IS NOT NULL);

-- INDEX ix_slack_event_waiting

CREATE INDEX ix_slack_event_waiting ON public.slack_event USING btree (team_id, channel_id, seq) WHERE (done_at IS NULL);

-- INDEX ix_slack_identity_account

CREATE INDEX ix_slack_identity_account ON public.slack_identity USING btree (account_id);

-- INDEX ix_web_session_account

CREATE INDEX ix_web_session_account ON public.web_session USING btree (account_id, last_seen_at);

-- INDEX ix_web_session_ends

CREATE INDEX ix_web_session_ends ON public.web_session USING btree (ends_at);

-- INDEX ux_agent_run_leased

CREATE UNIQUE INDEX ux_agent_run_leased ON public.agent_run USING btree (conversation_id) WHERE (state = 'LEASED'::text);

-- INDEX ux_mentor_conversation_main

CREATE UNIQUE INDEX ux_mentor_conversation_main ON public.mentor_conversation USING btree (workspace_id, account_id) WHERE (parent_conversation_id IS NULL);

-- INDEX ux_mentor_conversation_request

CREATE UNIQUE INDEX ux_mentor_conversation_request ON public.mentor_conversation USING btree (request_id, account_id, workspace_id) WHERE (request_id IS NOT NULL);

-- INDEX ux_mentor_turn_running

CREATE UNIQUE INDEX ux_mentor_turn_running ON public.mentor_turn USING btree (conversation_id) WHERE (status = 'RUNNING'::text);

-- INDEX ux_sandbox_live

CREATE UNIQUE INDEX ux_sandbox_live ON public.sandbox USING btree (conversation_id) WHERE (state <> 'ENDED'::text);

-- INDEX ux_slack_connection_team

CREATE UNIQUE INDEX ux_slack_connection_team ON public.slack_connection USING btree (team_id) WHERE (state <> 'ENDED'::text);

-- INDEX ux_slack_connection_workspace

CREATE UNIQUE INDEX ux_slack_connection_workspace ON public.slack_connection USING btree (workspace_id) WHERE (state <> 'ENDED'::text);

-- TRIGGER agent_run enqueue_slack_post

CREATE TRIGGER enqueue_slack_post AFTER UPDATE OF state ON public.agent_run FOR EACH ROW WHEN (((new.state = 'ENDED'::text) AND (old.state <> 'ENDED'::text) AND (new.turn_id IS NOT NULL))) EXECUTE FUNCTION public.enqueue_slack_post();

-- TRIGGER mentor_entry mentor_entry_edited

CREATE TRIGGER mentor_entry_edited BEFORE UPDATE OF text ON public.mentor_entry FOR EACH ROW WHEN (((new.text IS NOT NULL) AND (new.text IS DISTINCT FROM old.text))) EXECUTE FUNCTION public.mentor_entry_edited();

-- TRIGGER agent_run mentor_turn_run_agrees

CREATE CONSTRAINT TRIGGER mentor_turn_run_agrees AFTER INSERT OR UPDATE OF state ON public.agent_run DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.mentor_turn_run_agrees();

-- TRIGGER mentor_turn mentor_turn_run_agrees

CREATE CONSTRAINT TRIGGER mentor_turn_run_agrees AFTER INSERT OR UPDATE OF status ON public.mentor_turn DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.mentor_turn_run_agrees();

-- TRIGGER turn_slot mentor_turn_run_agrees

CREATE CONSTRAINT TRIGGER mentor_turn_run_agrees AFTER INSERT OR UPDATE OF run_id ON public.turn_slot DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.mentor_turn_run_agrees();

-- TRIGGER outbox_action outbox_action_step

CREATE TRIGGER outbox_action_step BEFORE UPDATE OF state ON public.outbox_action FOR EACH ROW EXECUTE FUNCTION public.outbox_action_step();

-- FK CONSTRAINT account_identity account_identity_account_id_fkey

ALTER TABLE ONLY public.account_identity
    ADD CONSTRAINT account_identity_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE RESTRICT;

-- FK CONSTRAINT account_invitation account_invitation_account_id_fkey

ALTER TABLE ONLY public.account_invitation
    ADD CONSTRAINT account_invitation_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE RESTRICT;

-- FK CONSTRAINT agent_run agent_run_conversation_fk

ALTER TABLE ONLY public.agent_run
    ADD CONSTRAINT agent_run_conversation_fk FOREIGN KEY (conversation_id, workspace_id) REFERENCES public.mentor_conversation(id, workspace_id);

-- FK CONSTRAINT agent_run agent_run_sandbox_fk

ALTER TABLE ONLY public.agent_run
    ADD CONSTRAINT agent_run_sandbox_fk FOREIGN KEY (sandbox_id, workspace_id) REFERENCES public.sandbox(id, workspace_id);

-- FK CONSTRAINT agent_run agent_run_turn_fk

ALTER TABLE ONLY public.agent_run
    ADD CONSTRAINT agent_run_turn_fk FOREIGN KEY (turn_id, workspace_id) REFERENCES public.mentor_turn(id, workspace_id);

-- FK CONSTRAINT claim_pause claim_pause_workspace_id_fkey

ALTER TABLE ONLY public.claim_pause
    ADD CONSTRAINT claim_pause_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT llm_binding llm_binding_model_id_fkey

ALTER TABLE ONLY public.llm_binding
    ADD CONSTRAINT llm_binding_model_id_fkey FOREIGN KEY (model_id) REFERENCES public.llm_model(id);

-- FK CONSTRAINT llm_binding llm_binding_workspace_id_fkey

ALTER TABLE ONLY public.llm_binding
    ADD CONSTRAINT llm_binding_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT llm_budget llm_budget_workspace_id_fkey

ALTER TABLE ONLY public.llm_budget
    ADD CONSTRAINT llm_budget_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT llm_model llm_model_connection_id_fkey

ALTER TABLE ONLY public.llm_model
    ADD CONSTRAINT llm_model_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES public.llm_connection(id);

-- FK CONSTRAINT llm_spend llm_spend_workspace_id_fkey

ALTER TABLE ONLY public.llm_spend
    ADD CONSTRAINT llm_spend_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT llm_usage_event llm_usage_event_workspace_id_fkey

ALTER TABLE ONLY public.llm_usage_event
    ADD CONSTRAINT llm_usage_event_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT mentor_conversation mentor_conversation_account_id_fkey

ALTER TABLE ONLY public.mentor_conversation
    ADD CONSTRAINT mentor_conversation_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE RESTRICT;

-- FK CONSTRAINT mentor_conversation mentor_conversation_parent_entry_fk

ALTER TABLE ONLY public.mentor_conversation
    ADD CONSTRAINT mentor_conversation_parent_entry_fk FOREIGN KEY (parent_entry_id, workspace_id) REFERENCES public.mentor_entry(id, workspace_id);

-- FK CONSTRAINT mentor_conversation mentor_conversation_parent_fk

ALTER TABLE ONLY public.mentor_conversation
    ADD CONSTRAINT mentor_conversation_parent_fk FOREIGN KEY (parent_conversation_id, workspace_id) REFERENCES public.mentor_conversation(id, workspace_id);

-- FK CONSTRAINT mentor_conversation mentor_conversation_workspace_id_fkey

ALTER TABLE ONLY public.mentor_conversation
    ADD CONSTRAINT mentor_conversation_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT mentor_entry mentor_entry_conversation_fk

ALTER TABLE ONLY public.mentor_entry
    ADD CONSTRAINT mentor_entry_conversation_fk FOREIGN KEY (conversation_id, workspace_id) REFERENCES public.mentor_conversation(id, workspace_id);

-- FK CONSTRAINT mentor_entry mentor_entry_turn_fk

ALTER TABLE ONLY public.mentor_entry
    ADD CONSTRAINT mentor_entry_turn_fk FOREIGN KEY (turn_id, workspace_id) REFERENCES public.mentor_turn(id, workspace_id);

-- FK CONSTRAINT mentor_path mentor_path_turn_fk

ALTER TABLE ONLY public.mentor_path
    ADD CONSTRAINT mentor_path_turn_fk FOREIGN KEY (turn_id, workspace_id) REFERENCES public.mentor_turn(id, workspace_id) ON DELETE CASCADE;

-- FK CONSTRAINT mentor_turn mentor_turn_account_id_fkey

ALTER TABLE ONLY public.mentor_turn
    ADD CONSTRAINT mentor_turn_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE RESTRICT;

-- FK CONSTRAINT mentor_turn mentor_turn_conversation_fk

ALTER TABLE ONLY public.mentor_turn
    ADD CONSTRAINT mentor_turn_conversation_fk FOREIGN KEY (conversation_id, workspace_id) REFERENCES public.mentor_conversation(id, workspace_id);

-- FK CONSTRAINT mentor_turn mentor_turn_question_fk

ALTER TABLE ONLY public.mentor_turn
    ADD CONSTRAINT mentor_turn_question_fk FOREIGN KEY (question_entry_id, workspace_id) REFERENCES public.mentor_entry(id, workspace_id);

-- FK CONSTRAINT outbox_action outbox_action_turn_fk

ALTER TABLE ONLY public.outbox_action
    ADD CONSTRAINT outbox_action_turn_fk FOREIGN KEY (turn_id, workspace_id) REFERENCES public.mentor_turn(id, workspace_id);

-- FK CONSTRAINT outbox_action outbox_action_workspace_id_fkey

ALTER TABLE ONLY public.outbox_action
    ADD CONSTRAINT outbox_action_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT outbox_step outbox_step_action_id_fkey

ALTER TABLE ONLY public.outbox_step
    ADD CONSTRAINT outbox_step_action_id_fkey FOREIGN KEY (action_id) REFERENCES public.outbox_action(id) ON DELETE CASCADE;

-- FK CONSTRAINT repository_request repository_request_repository_id_fkey

ALTER TABLE ONLY public.repository_request
    ADD CONSTRAINT repository_request_repository_id_fkey FOREIGN KEY (repository_id) REFERENCES public.repository(id) ON DELETE CASCADE;

-- FK CONSTRAINT repository repository_workspace_id_fkey

ALTER TABLE ONLY public.repository
    ADD CONSTRAINT repository_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT sandbox sandbox_conversation_fk

ALTER TABLE ONLY public.sandbox
    ADD CONSTRAINT sandbox_conversation_fk FOREIGN KEY (conversation_id, workspace_id) REFERENCES public.mentor_conversation(id, workspace_id);

-- FK CONSTRAINT sandbox sandbox_host_id_fkey

ALTER TABLE ONLY public.sandbox
    ADD CONSTRAINT sandbox_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.sandbox_host(id);

-- FK CONSTRAINT slack_connection slack_connection_workspace_id_fkey

ALTER TABLE ONLY public.slack_connection
    ADD CONSTRAINT slack_connection_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);

-- FK CONSTRAINT slack_identity slack_identity_account_id_fkey

ALTER TABLE ONLY public.slack_identity
    ADD CONSTRAINT slack_identity_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE RESTRICT;

-- FK CONSTRAINT slack_turn slack_turn_turn_fk

ALTER TABLE ONLY public.slack_turn
    ADD CONSTRAINT slack_turn_turn_fk FOREIGN KEY (turn_id, workspace_id) REFERENCES public.mentor_turn(id, workspace_id);

-- FK CONSTRAINT turn_slot turn_slot_run_id_fkey

ALTER TABLE ONLY public.turn_slot
    ADD CONSTRAINT turn_slot_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.agent_run(id);

-- FK CONSTRAINT web_session web_session_account_id_fkey

ALTER TABLE ONLY public.web_session
    ADD CONSTRAINT web_session_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE RESTRICT;

-- FK CONSTRAINT workspace_member workspace_member_account_id_fkey

ALTER TABLE ONLY public.workspace_member
    ADD CONSTRAINT workspace_member_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id) ON DELETE RESTRICT;

-- FK CONSTRAINT workspace_member workspace_member_workspace_id_fkey

ALTER TABLE ONLY public.workspace_member
    ADD CONSTRAINT workspace_member_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspace(id);
