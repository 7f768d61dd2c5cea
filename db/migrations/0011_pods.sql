-- Up Migration
-- Sandboxes that outlive their server (pods), and who we are among the installations that share a cluster.

-- One row for ever: what this installation's objects in a cluster are labelled with, so that another installation's are left alone.
create table installation (
  id uuid primary key default gen_random_uuid(),
  only_one boolean not null default true unique check (only_one)
);
insert into installation default values;

-- The end of its host does not end it: another server takes it over. (A server of the version before starts local ones only.)
alter table sandbox add column outlives_host boolean not null default false;
create index ix_sandbox_outlives on sandbox (host_id) where outlives_host and state <> 'ENDED';
