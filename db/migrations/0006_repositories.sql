-- Up Migration
-- Repositories that a workspace lets its turns load, and how many loads an attempt has had.

create table repository (
  id uuid primary key,
  workspace_id uuid not null references workspace,
  -- Its segment in `repos/<name>`.
  name text not null check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  clone_url text not null check (char_length(clone_url) between 1 and 2000),
  -- Chosen by an admin; null: the one that the remote's HEAD names.
  chosen_branch text check (char_length(chosen_branch) between 1 and 200),
  -- The remote's HEAD as it was seen last; null: it has none (an empty repository).
  remote_branch text check (char_length(remote_branch) between 1 and 200),
  created_at timestamptz not null default clock_timestamp(),
  -- When the remote was asked last.
  seen_at timestamptz,
  constraint ux_repository_name unique (workspace_id, name)
);

-- Pull and merge requests whose heads the remote publishes, as it was seen last.
create table repository_request (
  repository_id uuid not null references repository on delete cascade,
  number integer not null check (number > 0),
  -- Where the head is, for example refs/pull/12/head.
  ref text not null check (char_length(ref) between 1 and 200),
  primary key (repository_id, number)
);

-- tools_loads counts the loads of the attempt whose claim has this epoch; of any other attempt there were none.
alter table mentor_turn add column tools_loads_epoch integer not null default 0;
