-- Up Migration
-- The ledger: who may talk (workspace, account), what was said (conversation, entry), what is to be done (turn, run, slot) and by whom (host, sandbox).
-- Rules are in spec/RULES.md; the tag stands beside the constraint that enforces one.

create table workspace (
  id uuid primary key,
  slug text not null unique check (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  name text not null check (char_length(name) between 1 and 200),
  created_at timestamptz not null default clock_timestamp()
);

-- The account row is also the person fence: a write holds it FOR SHARE, an erasure updates it.
create table account (
  id uuid primary key,
  display_name text not null check (char_length(display_name) between 1 and 200),
  time_zone text not null default 'UTC',
  erasure_requested_at timestamptz,
  created_at timestamptz not null default clock_timestamp()
);

create table workspace_member (
  workspace_id uuid not null references workspace,
  account_id uuid not null references account on delete restrict,
  role text not null default 'member' check (role in ('member', 'admin', 'operator')),
  active boolean not null default true,
  visible boolean not null default true,
  created_at timestamptz not null default clock_timestamp(),
  primary key (workspace_id, account_id)
);

create table mentor_conversation (
  id uuid primary key,
  workspace_id uuid not null references workspace,
  account_id uuid not null references account on delete restrict,
  parent_conversation_id uuid,
  parent_entry_id uuid,
  version bigint not null default 0,
  last_seq bigint not null default 0,
  last_answer_at timestamptz,
  last_read_at timestamptz,
  slack_team_id text,
  slack_user_id text,
  slack_channel_id text,
  created_at timestamptz not null default clock_timestamp(),
  constraint ux_mentor_conversation_workspace unique (id, workspace_id),
  -- rule: R11
  constraint mentor_conversation_parent_fk foreign key (parent_conversation_id, workspace_id)
    references mentor_conversation (id, workspace_id),
  constraint mentor_conversation_thread check ((parent_conversation_id is null) = (parent_entry_id is null)),
  constraint mentor_conversation_slack check (parent_conversation_id is null or slack_team_id is null)
) with (fillfactor = 80);
-- One main conversation for each account and workspace: two first writes meet on this key, and the loser reads the winner's row.
create unique index ux_mentor_conversation_main on mentor_conversation (workspace_id, account_id) where parent_conversation_id is null;
create index ix_mentor_conversation_parent on mentor_conversation (parent_conversation_id) where parent_conversation_id is not null;

create table mentor_entry (
  id uuid primary key,
  workspace_id uuid not null,
  conversation_id uuid not null,
  turn_id uuid,
  seq bigint not null check (seq > 0),
  kind text not null check (kind in ('QUESTION', 'ANSWER', 'TOOL_RESULT', 'SYSTEM', 'SUMMARY', 'EDIT', 'DIGEST')),
  surface text not null check (surface in ('app', 'slack')),
  -- The words that a person sees, normalised (src/kernel/text.ts); null where an entry shows none.
  text text,
  -- Pi's session entry, byte for byte: type json keeps key order, \u0000 and lone surrogates.
  payload json,
  search_text text,
  from_seq bigint,
  to_seq bigint,
  vote smallint check (vote in (-1, 1)),
  created_at timestamptz not null default clock_timestamp(),
  erased_at timestamptz,
  constraint ux_mentor_entry_workspace unique (id, workspace_id),
  -- rule: R3
  constraint ux_mentor_entry_seq unique (conversation_id, seq),
  -- rule: R11
  constraint mentor_entry_conversation_fk foreign key (conversation_id, workspace_id) references mentor_conversation (id, workspace_id),
  constraint mentor_entry_summary check (kind = 'SUMMARY' or (from_seq is null and to_seq is null)),
  constraint mentor_entry_erased check (erased_at is null or (text is null and search_text is null))
);
create index ix_mentor_entry_turn on mentor_entry (turn_id);
alter table mentor_conversation add constraint mentor_conversation_parent_entry_fk
  foreign key (parent_entry_id, workspace_id) references mentor_entry (id, workspace_id);

create table mentor_turn (
  id uuid primary key,
  workspace_id uuid not null,
  conversation_id uuid not null,
  account_id uuid not null references account on delete restrict,
  question_entry_id uuid not null,
  question_seq bigint not null,
  request_id text not null check (char_length(request_id) between 1 and 128),
  surface text not null check (surface in ('app', 'slack')),
  status text not null default 'QUEUED' check (status in ('QUEUED', 'RUNNING', 'DONE', 'STOPPED', 'FAILED')),
  -- rule: R9
  attempt smallint not null default 0 constraint mentor_turn_attempts check (attempt between 0 and 2),
  page json,
  -- Model, price and limits as they were when the turn was admitted.
  admission json,
  error_code text,
  error_text text,
  error_detail text,
  tools_loads smallint not null default 0,
  created_at timestamptz not null default clock_timestamp(),
  started_at timestamptz,
  ended_at timestamptz,
  constraint ux_mentor_turn_workspace unique (id, workspace_id),
  -- rule: R2
  -- The most selective column first: with workspace_id first, the checks of foreign keys to (id, workspace_id) were planned through this index
  -- on a young database, and read every turn of the workspace.
  constraint ux_mentor_turn_request unique (request_id, account_id, workspace_id, surface),
  constraint ux_mentor_turn_question unique (conversation_id, question_seq),
  -- rule: R11
  constraint mentor_turn_conversation_fk foreign key (conversation_id, workspace_id) references mentor_conversation (id, workspace_id),
  constraint mentor_turn_question_fk foreign key (question_entry_id, workspace_id) references mentor_entry (id, workspace_id),
  constraint mentor_turn_ended check ((status in ('QUEUED', 'RUNNING')) = (ended_at is null)),
  constraint mentor_turn_started check (status <> 'RUNNING' or (attempt > 0 and started_at is not null)),
  constraint mentor_turn_error check ((status = 'FAILED') = (error_code is not null and error_text is not null))
) with (fillfactor = 80);
-- rule: R1
create unique index ux_mentor_turn_running on mentor_turn (conversation_id) where status = 'RUNNING';
create index ix_mentor_turn_queued on mentor_turn (conversation_id, question_seq) where status = 'QUEUED';
alter table mentor_entry add constraint mentor_entry_turn_fk foreign key (turn_id, workspace_id) references mentor_turn (id, workspace_id);

-- One row per boot of a machine that runs sandboxes. The machine proves that it lives by a session-level advisory lock on lock_key.
create table sandbox_host (
  id uuid primary key,
  -- The same name at each boot of one data directory; a newer boot of a name replaces the older ones.
  name text not null check (char_length(name) between 1 and 200),
  lock_key bigint not null unique,
  -- The number of slots that this server was told to keep; servers that disagree are not ready.
  capacity_turns integer not null check (capacity_turns >= 0),
  started_at timestamptz not null default clock_timestamp(),
  -- Its session lock was found free; found free again a little later, the host is dead.
  suspected_at timestamptz,
  ended_at timestamptz
);

create table sandbox (
  id uuid primary key,
  workspace_id uuid not null,
  conversation_id uuid not null,
  host_id uuid not null references sandbox_host,
  credential_hash bytea not null unique check (octet_length(credential_hash) = 32),
  state text not null default 'STARTING' check (state in ('STARTING', 'READY', 'ENDED')),
  created_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  constraint ux_sandbox_workspace unique (id, workspace_id),
  -- rule: R11
  constraint sandbox_conversation_fk foreign key (conversation_id, workspace_id) references mentor_conversation (id, workspace_id),
  constraint sandbox_ended check ((state = 'ENDED') = (ended_at is not null))
);
-- A conversation has one sandbox at a time.
create unique index ux_sandbox_live on sandbox (conversation_id) where state <> 'ENDED';
create index ix_sandbox_host on sandbox (host_id) where state <> 'ENDED';

create table agent_run (
  id uuid primary key,
  workspace_id uuid not null,
  kind text not null check (kind in ('TURN', 'DIGEST')),
  -- The subject.
  conversation_id uuid not null,
  turn_id uuid,
  -- Leased is a state, not a time: an expired lease that nobody took back may still renew or end.
  state text not null default 'WAITING' check (state in ('WAITING', 'LEASED', 'ENDED')),
  -- rule: R5: (id, epoch) names the attempt; each claim raises the epoch.
  epoch integer not null default 0 check (epoch >= 0),
  sandbox_id uuid,
  lease_until timestamptz,
  -- After it, each call of the attempt except its end is refused.
  deadline_at timestamptz,
  -- No renewal goes past it: the deadline, or a stop, plus the grace.
  bound_at timestamptz,
  -- First call of the present claim: before it, the same sandbox may be given the same claim again.
  called_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  constraint ux_agent_run_workspace unique (id, workspace_id),
  constraint ux_agent_run_turn unique (turn_id),
  -- rule: R11
  constraint agent_run_conversation_fk foreign key (conversation_id, workspace_id) references mentor_conversation (id, workspace_id),
  constraint agent_run_turn_fk foreign key (turn_id, workspace_id) references mentor_turn (id, workspace_id),
  constraint agent_run_sandbox_fk foreign key (sandbox_id, workspace_id) references sandbox (id, workspace_id),
  constraint agent_run_kind check ((kind = 'TURN') = (turn_id is not null)),
  constraint agent_run_leased check (
    (state = 'LEASED') = (lease_until is not null and deadline_at is not null and bound_at is not null and sandbox_id is not null)),
  constraint agent_run_ended check ((state = 'ENDED') = (ended_at is not null))
) with (fillfactor = 80);
-- rule: R1
create unique index ux_agent_run_leased on agent_run (conversation_id) where state = 'LEASED';
create index ix_agent_run_lease on agent_run (lease_until) where state = 'LEASED';

-- rule: R4: one row per slot of the installation. A leased TURN run holds exactly one; a free row has no run.
create table turn_slot (
  slot_no integer primary key check (slot_no > 0),
  run_id uuid constraint ux_turn_slot_run unique references agent_run,
  -- The capacity was lowered while this slot was held: it goes when it comes free.
  retiring boolean not null default false
);

-- One row per model call. It refers to no turn, so that it survives an erasure.
create table llm_usage_event (
  -- rule: R15: the call's own id; a call is billed once.
  id uuid primary key,
  workspace_id uuid not null references workspace,
  conversation_id uuid not null,
  turn_id uuid not null,
  run_id uuid not null,
  epoch integer not null,
  attempt smallint not null,
  api text not null,
  model text not null,
  state text not null default 'OPEN' check (state in ('OPEN', 'CLOSED')),
  outcome text,
  http_status smallint,
  input_tokens bigint check (input_tokens >= 0),
  output_tokens bigint check (output_tokens >= 0),
  cache_read_tokens bigint check (cache_read_tokens >= 0),
  cache_write_tokens bigint check (cache_write_tokens >= 0),
  opened_at timestamptz not null default clock_timestamp(),
  closed_at timestamptz,
  constraint llm_usage_event_closed check ((state = 'CLOSED') = (closed_at is not null and outcome is not null))
);
create index ix_llm_usage_event_turn on llm_usage_event (turn_id);
create index ix_llm_usage_event_open on llm_usage_event (opened_at) where state = 'OPEN';

-- The one rule of what a server may start (seed: "The SQL rule is the same as the claim, so the two cannot disagree"):
-- the first queued turn of a conversation that has no leased run. A running turn has a leased run (rule R6).
create view claimable_turn as
select t.id, t.workspace_id, t.conversation_id, t.created_at, t.attempt
from mentor_turn t
where t.status = 'QUEUED'
  and not exists (
    select 1 from mentor_turn e
    where e.conversation_id = t.conversation_id and e.status = 'QUEUED' and e.question_seq < t.question_seq)
  and not exists (select 1 from agent_run r where r.conversation_id = t.conversation_id and r.state = 'LEASED');

-- Claim order: workspaces that hold fewer slots first, then the oldest question. `rank` counts from 1.
create view claim_order as
with held as (
  select r.workspace_id, count(*) as slots
  from turn_slot s join agent_run r on r.id = s.run_id
  group by r.workspace_id
), share as (
  select t.*, coalesce(h.slots, 0) + row_number() over (partition by t.workspace_id order by t.created_at, t.id) as turn_of_workspace
  from claimable_turn t left join held h using (workspace_id)
)
select s.id, s.workspace_id, s.conversation_id, s.created_at,
  row_number() over (order by s.turn_of_workspace, s.created_at, s.id) as rank
from share s;

-- rule: R6: turn, run and slot agree at every commit. Legal pairs: QUEUED-WAITING, RUNNING-LEASED, STOPPED-LEASED, terminal-ENDED;
-- a leased TURN run holds one slot, any other run none (rule: R4).
create function mentor_turn_run_agrees() returns trigger language plpgsql as $$
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

create constraint trigger mentor_turn_run_agrees after insert or update of status on mentor_turn
  deferrable initially deferred for each row execute function mentor_turn_run_agrees();
create constraint trigger mentor_turn_run_agrees after insert or update of state on agent_run
  deferrable initially deferred for each row execute function mentor_turn_run_agrees();
create constraint trigger mentor_turn_run_agrees after insert or update of run_id on turn_slot
  deferrable initially deferred for each row execute function mentor_turn_run_agrees();
