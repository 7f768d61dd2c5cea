-- Up Migration
-- Claims over the pulls of all servers, starts that fail, and an exact count of model calls.

-- The pulls that wait for a slot, one row per server: what its last claim statement could not serve (ADR 14). A pull without a claimable
-- turn is in no row, so a quiet installation writes nothing here. A hint: the claim compares it with the ledger's own rows, a server writes its
-- row again with each claim, and one that stops asking is forgotten at open_until. Nothing is lost with it, so it is not logged.
create unlogged table waiting_pull (
  host_id uuid primary key,
  -- What waits: a turn, and at the same place the sandbox whose pull is parked.
  turn_ids uuid[] not null,
  sandbox_ids uuid[] not null,
  -- By the database clock (rule R8).
  open_until timestamptz not null,
  constraint waiting_pull_pairs check (cardinality(turn_ids) = cardinality(sandbox_ids))
) with (fillfactor = 50);

-- Claim order: workspaces that hold fewer slots first; among equals the one that was served longest ago, then the oldest question (ADR 14). With
-- the question's age alone, a workspace with 1,000 waiting turns went before a quiet one each time that neither held a slot.
-- `rank` counts from 1.
create index ix_mentor_turn_served on mentor_turn (workspace_id, started_at) where started_at is not null;
create or replace view claim_order as
with claimable as (
  select * from claimable_turn
), held as (
  select r.workspace_id, count(*) as slots
  from turn_slot s join agent_run r on r.id = s.run_id
  group by r.workspace_id
), served as (
  select w.workspace_id,
    (select max(t.started_at) from mentor_turn t where t.workspace_id = w.workspace_id and t.started_at is not null) as served_at
  from (select distinct workspace_id from claimable) w
), share as (
  select t.*, s.served_at,
    coalesce(h.slots, 0) + row_number() over (partition by t.workspace_id order by t.created_at, t.id) as turn_of_workspace
  from claimable t join served s using (workspace_id) left join held h using (workspace_id)
)
select s.id, s.workspace_id, s.conversation_id, s.created_at,
  row_number() over (order by s.turn_of_workspace, s.served_at nulls first, s.created_at, s.id) as rank
from share s;

-- A sandbox that could not be started, or died before it was given a run. Counted, so that a turn whose sandbox never starts comes to an end.
alter table sandbox add column start_failed boolean not null default false,
  add constraint sandbox_start_failed check (not start_failed or state = 'ENDED');
create index ix_sandbox_start_failed on sandbox (conversation_id, created_at) where start_failed;

-- How many sandboxes this server may start: one with 0 starts none. (A server of the version before does not say so; it starts some.)
-- capacity_turns was written and never read; it is no longer written, and goes once no server of the version before is left.
alter table sandbox_host add column sandboxes_max integer not null default 1 check (sandboxes_max >= 0);
alter table sandbox_host alter column capacity_turns drop not null;

-- Model calls that this turn has opened, over all of its attempts. Raised by the statement that opens one (db/gateway/open-call.ts).
alter table mentor_turn add column model_calls integer not null default 0 check (model_calls >= 0);

-- Which server sends the call (its boot in sandbox_host; no foreign key, usage outlives hosts): when that server is dead, the call is over (ADR 15).
alter table llm_usage_event add column host_id uuid;
