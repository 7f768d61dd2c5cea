-- Up Migration
-- What a turn's context counts, by indexes alone: how the questions of its conversation ended, and how many messages it has. Both hold one key for
-- each conversation, so ten thousand rows of one are some ten pages.
create index ix_mentor_turn_ended on mentor_turn (conversation_id, status) where status in ('DONE', 'STOPPED', 'FAILED');
create index ix_mentor_entry_shown on mentor_entry (conversation_id)
  where kind in ('QUESTION', 'ANSWER', 'DIGEST') and erased_at is null and text <> '';
