-- Up Migration
-- Slack: notes that belong to no thread (of a weekly digest, of a welcome), edits that overtake, the retention of what tools copied.

-- A note without a thread is a message of its own.
alter table outbox_action alter column thread_ts drop not null;
-- rule: R14: one note for a digest.
alter table outbox_action add column digest_id uuid constraint ux_outbox_action_digest unique;
alter table outbox_action drop constraint outbox_action_kind_check, drop constraint outbox_action_kind;
alter table outbox_action
  add constraint outbox_action_kind_check check (kind in ('SLACK_POST', 'SLACK_NOTICE', 'SLACK_DIGEST')),
  add constraint outbox_action_kind check (
    (kind = 'SLACK_POST') = (turn_id is not null) and (kind = 'SLACK_NOTICE') = (notice is not null and event_id is not null)
    and (kind = 'SLACK_DIGEST') = (digest_id is not null)),
  add constraint outbox_action_thread check (kind <> 'SLACK_POST' or thread_ts is not null),
  -- rule: R11
  add constraint outbox_action_digest_fk foreign key (digest_id, workspace_id) references mentor_entry (id, workspace_id);

-- Whoever writes a digest enqueues its note in the same transaction, where its owner has asked in a team that is connected.
create function enqueue_slack_digest() returns trigger language plpgsql as $$
begin
  insert into outbox_action (id, kind, workspace_id, team_id, channel_id, digest_id, due_at)
  select gen_random_uuid(), 'SLACK_DIGEST', c.workspace_id, c.slack_team_id, c.slack_channel_id, new.id, clock_timestamp()
  from mentor_conversation c
  where c.id = new.conversation_id and c.slack_channel_id is not null
    and exists (select from slack_connection k where k.team_id = c.slack_team_id and k.workspace_id = c.workspace_id and k.state = 'ACTIVE')
    -- rule: R16: the user is still who the conversation belongs to.
    and exists (select from slack_identity i where i.team_id = c.slack_team_id and i.user_id = c.slack_user_id and i.account_id = c.account_id)
  on conflict (digest_id) do nothing;
  return null;
end $$;
create trigger enqueue_slack_digest after insert on mentor_entry
  for each row when (new.kind = 'DIGEST') execute function enqueue_slack_digest();

-- The message that a delivery brought: an edit that comes before its message is told from one of a message that became no question.
alter table slack_event add column message_ts text;
create index ix_slack_event_message on slack_event (team_id, channel_id, message_ts) where message_ts is not null;

-- Sweeps that run once a week, by one server: the last week that each was begun in. Weeks begin on Sunday, UTC.
create table weekly_sweep (
  name text primary key check (char_length(name) between 1 and 60),
  week date not null
);

-- What may hold a copy of somebody's words, by age.
create index ix_mentor_entry_copies on mentor_entry (created_at, id) where kind = 'TOOL_RESULT' and erased_at is null;
