-- Up Migration
-- What the path of a turn reads, threads that a client may ask for twice, and what each turn's path looked like.

-- The path starts at the newest summary: it is found without reading the conversation. Erasures look for summaries too and may have made it.
create index if not exists ix_mentor_entry_summary on mentor_entry (conversation_id, seq) where kind = 'SUMMARY' and erased_at is null;
-- Entries outside of turns (digests), by place.
create index ix_mentor_entry_outside on mentor_entry (conversation_id, seq) where turn_id is null;

-- rule: R13: other words in the place of a message's words are an edit, whoever writes them: the path may differ from there on.
alter table mentor_entry add column edited_at timestamptz;
create function mentor_entry_edited() returns trigger language plpgsql as $$ begin
  new.edited_at := clock_timestamp();
  return new;
end $$;
create trigger mentor_entry_edited before update of text on mentor_entry
  for each row when (new.text is not null and new.text is distinct from old.text) execute function mentor_entry_edited();

-- A client's own name for a thread, so that a repeat after a lost reply finds the thread that it has made.
alter table mentor_conversation add column request_id text check (char_length(request_id) between 1 and 128);
alter table mentor_conversation add constraint mentor_conversation_request check (request_id is null or parent_conversation_id is not null);
-- The newest seq of the main conversation when the thread began; what is later was said since.
alter table mentor_conversation add column forked_seq bigint;
create unique index ux_mentor_conversation_request on mentor_conversation (request_id, account_id, workspace_id) where request_id is not null;
-- Threads of a conversation, newest first.
create index ix_mentor_conversation_threads on mentor_conversation (parent_conversation_id, created_at desc) where parent_conversation_id is not null;
drop index ix_mentor_conversation_parent;

-- rule: R13: what the path of a turn looked like when an attempt read it. It holds ids and hashes, never words.
create table mentor_path (
  turn_id uuid primary key,
  workspace_id uuid not null,
  conversation_id uuid not null,
  question_seq bigint not null,
  -- By the database clock.
  read_at timestamptz not null,
  time_zone text not null,
  -- The summary that the path started from.
  summary_id uuid,
  -- SHA-256, the first 8 bytes: of the system prompt.
  system_hash bytea not null check (octet_length(system_hash) = 8),
  -- 32 bytes for each entry, in order: its id, 8 bytes of the SHA-256 of the bytes that were given out, 8 of what was declared about it.
  entries bytea not null check (octet_length(entries) % 32 = 0),
  -- rule: R11
  constraint mentor_path_turn_fk foreign key (turn_id, workspace_id) references mentor_turn (id, workspace_id) on delete cascade
);
create index ix_mentor_path_conversation on mentor_path (conversation_id, question_seq);
