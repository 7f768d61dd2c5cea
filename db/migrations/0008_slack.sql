-- Up Migration
-- Slack: teams that are connected, who is who there, what has arrived, and what is to be said. Words stay in the ledger: an action names its turn.

-- A team is connected to one workspace, and a workspace to one team. The row is the lifecycle lock: a question of Slack holds it FOR SHARE.
create table slack_connection (
  id uuid primary key,
  workspace_id uuid not null references workspace,
  team_id text not null check (team_id ~ '^[A-Z0-9]{1,30}$'),
  bot_user_id text not null check (char_length(bot_user_id) between 1 and 30),
  bot_token_sealed bytea,
  -- ENDING: nothing is stored any more, and what was written in Slack is being erased.
  state text not null default 'ACTIVE' check (state in ('ACTIVE', 'ENDING', 'ENDED')),
  why text,
  created_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  -- Slack's limits hold for a team: no post, and no reading back, before.
  post_after timestamptz not null default clock_timestamp(),
  read_after timestamptz not null default clock_timestamp(),
  constraint slack_connection_token check ((state = 'ACTIVE') = (bot_token_sealed is not null)),
  constraint slack_connection_ended check ((state = 'ENDED') = (ended_at is not null))
);
create unique index ux_slack_connection_team on slack_connection (team_id) where state <> 'ENDED';
create unique index ux_slack_connection_workspace on slack_connection (workspace_id) where state <> 'ENDED';

-- A user of a team who has said, signed in, which account they are.
create table slack_identity (
  team_id text not null,
  user_id text not null check (char_length(user_id) between 1 and 30),
  account_id uuid not null references account on delete restrict,
  created_at timestamptz not null default clock_timestamp(),
  constraint slack_identity_pk primary key (team_id, user_id)
);
create index ix_slack_identity_account on slack_identity (account_id);

-- Where a turn was asked: edits and deletions find its question by it, and its answer the way back.
create table slack_turn (
  turn_id uuid primary key,
  workspace_id uuid not null,
  team_id text not null,
  channel_id text not null check (char_length(channel_id) between 1 and 30),
  message_ts text not null check (char_length(message_ts) between 1 and 30),
  thread_ts text not null check (char_length(thread_ts) between 1 and 30),
  constraint ux_slack_turn_message unique (team_id, channel_id, message_ts),
  -- rule: R11
  constraint slack_turn_turn_fk foreign key (turn_id, workspace_id) references mentor_turn (id, workspace_id)
);

-- What Slack has delivered. A row is stored before the delivery is acknowledged, once for each event; its words go when it is done.
create table slack_event (
  team_id text not null,
  event_id text not null check (char_length(event_id) between 1 and 60),
  seq bigint generated always as identity,
  channel_id text not null default '',
  -- The message that was deleted: it must not be stored when its own event comes late.
  deleted_ts text,
  payload json,
  tries smallint not null default 0,
  lease_until timestamptz,
  outcome text,
  created_at timestamptz not null default clock_timestamp(),
  done_at timestamptz,
  constraint slack_event_pk primary key (team_id, event_id),
  constraint slack_event_done check ((done_at is null) = (payload is not null) and (done_at is null) = (outcome is null))
);
create index ix_slack_event_waiting on slack_event (team_id, channel_id, seq) where done_at is null;
create index ix_slack_event_deleted on slack_event (team_id, channel_id, deleted_ts) where deleted_ts is not null;
create index ix_slack_event_created on slack_event (created_at);

-- rule: R14: one action for a turn, and one for an event that is answered without a turn. It becomes visible at most once.
create table outbox_action (
  id uuid primary key,
  seq bigint generated always as identity,
  kind text not null check (kind in ('SLACK_POST', 'SLACK_NOTICE')),
  workspace_id uuid not null references workspace,
  team_id text not null,
  channel_id text not null,
  thread_ts text not null,
  turn_id uuid constraint ux_outbox_action_turn unique,
  -- Which fixed words a notice says, to whom, and the event that asked for it.
  notice text,
  user_id text,
  event_id text,
  state text not null default 'PENDING' check (state in ('PENDING', 'SENDING', 'SENT', 'RETRY', 'UNCERTAIN', 'PARKED', 'DEAD')),
  attempts integer not null default 0,
  -- Readings of the history since the last attempt.
  reads integer not null default 0,
  -- When it is to be looked at next; an uncertain one without it waits for an operator.
  due_at timestamptz,
  -- Names the attempt: what it learns is written under this name only.
  lease_id uuid,
  lease_until timestamptz,
  started_at timestamptz,
  message_ts text,
  reason text,
  moved_by text not null default 'server' check (moved_by in ('server', 'operator')),
  created_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  constraint ux_outbox_action_event unique (team_id, event_id),
  constraint outbox_action_kind check ((kind = 'SLACK_POST') = (turn_id is not null) and (kind = 'SLACK_NOTICE') = (notice is not null and event_id is not null)),
  constraint outbox_action_sending check (state <> 'SENDING' or (lease_id is not null and lease_until is not null and started_at is not null)),
  constraint outbox_action_due check (state not in ('PENDING', 'RETRY') or due_at is not null),
  constraint outbox_action_ended check ((state in ('SENT', 'DEAD')) = (ended_at is not null)),
  -- rule: R11
  constraint outbox_action_turn_fk foreign key (turn_id, workspace_id) references mentor_turn (id, workspace_id)
);
create index ix_outbox_action_open on outbox_action (team_id, channel_id, seq) where state in ('PENDING', 'RETRY', 'SENDING', 'UNCERTAIN');
create index ix_outbox_action_pace on outbox_action (team_id, channel_id, started_at);

-- Each step of an action, for operators.
create table outbox_step (
  action_id uuid not null references outbox_action on delete cascade,
  at timestamptz not null default clock_timestamp(),
  from_state text not null,
  to_state text not null,
  reason text,
  moved_by text not null
);
create index ix_outbox_step_action on outbox_step (action_id, at);

-- rule: R14: the only steps there are. From an unknown outcome a server goes on only with what was learnt about that very attempt.
create function outbox_action_step() returns trigger language plpgsql as $$
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
create trigger outbox_action_step before update of state on outbox_action for each row execute function outbox_action_step();

-- Every end of a Slack turn enqueues its post, in its own transaction, whoever ends it. It hangs on the run: a stopped turn is terminal
-- at once, but its words come with the end of its run (spec/decisions/0029).
create function enqueue_slack_post() returns trigger language plpgsql as $$
begin
  insert into outbox_action (id, kind, workspace_id, team_id, channel_id, thread_ts, turn_id, due_at)
  select gen_random_uuid(), 'SLACK_POST', s.workspace_id, s.team_id, s.channel_id, s.thread_ts, s.turn_id, clock_timestamp()
  from slack_turn s where s.turn_id = new.turn_id
  on conflict (turn_id) do nothing;
  return null;
end $$;
create trigger enqueue_slack_post after update of state on agent_run
  for each row when (new.state = 'ENDED' and old.state <> 'ENDED' and new.turn_id is not null) execute function enqueue_slack_post();

create index ix_mentor_entry_slack on mentor_entry (workspace_id) where surface = 'slack' and erased_at is null;
