-- Up Migration
-- Who operates the installation, pauses of one surface, more actions, and every attempt that a run had (spec/decisions/0040-operator-roles.md).

-- Roles of accounts on the operations listener. A membership with the role `operator` counts as `operator` there, too.
create table operator_account (
  account_id uuid primary key references account on delete cascade,
  role text not null check (role in ('viewer', 'operator', 'admin')),
  -- Who gave it: an operator's name.
  granted_by text not null check (char_length(granted_by) between 1 and 100),
  granted_at timestamptz not null default clock_timestamp()
);

-- A pause is of the installation, of one workspace, or of one surface.
alter table claim_pause add column surface text check (surface in ('app', 'slack')),
  add constraint claim_pause_scope check (workspace_id is null or surface is null),
  drop constraint ux_claim_pause,
  add constraint ux_claim_pause unique nulls not distinct (workspace_id, surface);

-- The one rule of what a server may start, now with pauses of a surface. Each is read once for a statement, so an empty table costs nothing per turn.
create or replace view claimable_turn as
select t.id, t.workspace_id, t.conversation_id, t.created_at, t.attempt
from mentor_turn t
where t.status = 'QUEUED'
  and not exists (
    select 1 from mentor_turn e
    where e.conversation_id = t.conversation_id and e.status = 'QUEUED' and e.question_seq < t.question_seq)
  and not exists (select 1 from agent_run r where r.conversation_id = t.conversation_id and r.state = 'LEASED')
  and not exists (select 1 from claim_pause p where p.workspace_id is null and p.surface is null)
  and t.workspace_id <> all (array(select p.workspace_id from claim_pause p where p.workspace_id is not null))
  and t.surface <> all (array(select p.surface from claim_pause p where p.surface is not null));

-- rule: R17: more that an operator does, and the batch that a row belongs to. Of a revealed entry the log holds its place and its size, never its words.
alter table operator_action
  drop constraint operator_action_action_check,
  add constraint operator_action_action_check check (action in ('stop', 'requeue', 'skip', 'release', 'pause-claims', 'resume-claims', 'drain',
    'outbox-sent', 'outbox-again', 'reveal-entry', 'set-operator')),
  add column batch_id uuid;
create index ix_operator_action_batch on operator_action (batch_id) where batch_id is not null;

-- Attempts of a run that are over and were not its only one: the run itself tells of its present or only one.
create table run_attempt (
  run_id uuid not null references agent_run on delete cascade,
  epoch integer not null check (epoch > 0),
  sandbox_id uuid,
  -- Its first call: right after its claim. null: it made none.
  called_at timestamptz,
  ended_at timestamptz not null default clock_timestamp(),
  -- HANDED_ON gave its attempt back (rule R9); the others count.
  how text not null check (how in ('HANDED_ON', 'SANDBOX_ENDED', 'DEADLINE_OVER', 'LEASE_OVER', 'ENDED')),
  primary key (run_id, epoch)
);

-- Runs only when an attempt is over that is not the only one of its run, so a turn that goes through at once pays nothing.
-- Each claim counts an attempt and each hand-on gives one back: epoch - attempt is the number of hand-ons so far.
create function keep_run_attempt() returns trigger language plpgsql as $$
declare
  handed_on integer;
  before integer;
  the_status text;
begin
  select new.epoch - t.attempt, t.status into handed_on, the_status from mentor_turn t where t.id = new.turn_id;
  select count(*) into before from run_attempt a where a.run_id = new.id and a.how = 'HANDED_ON';
  insert into run_attempt (run_id, epoch, sandbox_id, called_at, how)
  values (new.id, old.epoch, old.sandbox_id, old.called_at, case
    when handed_on > before then 'HANDED_ON'
    when the_status = 'DONE' then 'ENDED'
    when exists (select from sandbox b where b.id = old.sandbox_id and b.state = 'ENDED') then 'SANDBOX_ENDED'
    when old.deadline_at <= clock_timestamp() then 'DEADLINE_OVER'
    when old.lease_until <= clock_timestamp() or new.state = 'WAITING' then 'LEASE_OVER'
    else 'ENDED' end)
  on conflict do nothing;
  return null;
end $$;
create trigger keep_run_attempt after update of state on agent_run
  for each row when (old.state = 'LEASED' and new.state <> 'LEASED' and new.turn_id is not null and (new.state = 'WAITING' or new.epoch > 1))
  execute function keep_run_attempt();

-- Sandboxes and entries as operators page through them.
create index ix_sandbox_created on sandbox (created_at, id);
