-- Up Migration
-- What operators see and do: claims that are paused, the log of their actions, which build each server is and whether it drains.

-- While a row is here no claim is made: for one workspace, or (workspace_id null) for the whole installation. Turns wait, runs go on.
create table claim_pause (
  workspace_id uuid references workspace,
  reason text not null check (char_length(reason) between 1 and 500),
  -- Who paused them: `local`, or an account.
  operator text not null check (char_length(operator) between 1 and 100),
  paused_at timestamptz not null default clock_timestamp(),
  constraint ux_claim_pause unique nulls not distinct (workspace_id)
);

-- The one rule of what a server may start, now with the pauses. Both are read once for a statement, so an empty table costs nothing per turn.
create or replace view claimable_turn as
select t.id, t.workspace_id, t.conversation_id, t.created_at, t.attempt
from mentor_turn t
where t.status = 'QUEUED'
  and not exists (
    select 1 from mentor_turn e
    where e.conversation_id = t.conversation_id and e.status = 'QUEUED' and e.question_seq < t.question_seq)
  and not exists (select 1 from agent_run r where r.conversation_id = t.conversation_id and r.state = 'LEASED')
  and not exists (select 1 from claim_pause p where p.workspace_id is null)
  and t.workspace_id <> all (array(select p.workspace_id from claim_pause p where p.workspace_id is not null));

-- Every action of an operator. The row is written before the action and closed after it: one that is still BEGUN was cut off, and a repeat
-- with its key takes it up again, fenced by what `state_before` says.
create table operator_action (
  id uuid primary key,
  -- rule: R17: a repeat with the same key returns what the first one did.
  idempotency_key text not null constraint ux_operator_action_key unique check (char_length(idempotency_key) between 1 and 128),
  -- `local`, or an account.
  operator text not null check (char_length(operator) between 1 and 100),
  action text not null check (action in ('stop', 'requeue', 'skip', 'pause-claims', 'resume-claims', 'drain')),
  -- A turn, a workspace or `installation`, a server.
  target text not null check (char_length(target) between 1 and 200),
  reason text not null check (char_length(reason) between 1 and 500),
  state text not null default 'BEGUN' check (state in ('BEGUN', 'DONE')),
  -- What was so before, and what is so after it: statuses and counts, never words of a conversation.
  state_before json not null,
  state_after json,
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  constraint operator_action_done check ((state = 'DONE') = (finished_at is not null and state_after is not null))
);

create index ix_operator_action_target on operator_action (target);

-- What a server is, for those who look at all of them.
alter table sandbox_host add column build text check (char_length(build) between 1 and 100), add column draining_at timestamptz;

-- The sandboxes that a conversation had.
create index ix_sandbox_conversation on sandbox (conversation_id, created_at);

-- The failures and the model calls of the last hour. The second is small: calls are opened in the order of time.
create index ix_mentor_turn_failed on mentor_turn (ended_at) where status = 'FAILED';
create index ix_llm_usage_event_opened on llm_usage_event using brin (opened_at);
