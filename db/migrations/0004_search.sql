-- Up Migration
-- What a person or the model finds again (search), and what must go with an entry that is erased.

-- The words of an entry as the index knows them (spec/decisions/0018). The text search of PostgreSQL is told where a word ends, because its own
-- parser asks the locale of the database, keeps `src/kernel/text.ts` as one word, and takes a whole Chinese sentence for a word:
-- punctuation is a space, and each character of a script that is written without spaces is a word of its own.
-- Only the head of a long text is looked at: a tsvector of more than 1 MB is an error, and no text may fail a write.
create function mentor_search_words(words text) returns text language sql immutable strict parallel safe as $$
  select case
    when octet_length(words) = char_length(words) then regexp_replace(lower(left(words, 100000)), '[!-/:-@\[-`{-~]+', ' ', 'g')
    else regexp_replace(
      regexp_replace(lower(left(words, 100000)),
        '[!-/:-@\[-`{-~\u00a0-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2000-\u206f\u3000-\u3004\u3008-\u3020\ufe30-\ufe4f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+',
        ' ', 'g'),
      '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3021-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])',
      ' \1 ', 'g')
  end
$$;

-- Cleared with the words: an erasure cannot forget it.
alter table mentor_entry
  add column search_vector tsvector generated always as (to_tsvector('simple', mentor_search_words(search_text))) stored,
  -- The entries that this one quotes: a search result goes with each of them.
  add column source_entry_ids uuid[],
  add constraint mentor_entry_sources check (source_entry_ids is null or (kind = 'TOOL_RESULT' and erased_at is null)),
  -- The row of an erased entry holds no words: its payload is the skeleton that Pi needs to pair calls and results, or nothing.
  add constraint mentor_entry_erased_payload check (erased_at is null or payload is null or kind in ('ANSWER', 'TOOL_RESULT'));
create index ix_mentor_entry_text_search on mentor_entry using gin (search_vector);
create index ix_mentor_entry_sources on mentor_entry using gin (source_entry_ids) where source_entry_ids is not null;
-- (the path of a turn looks for summaries by the same index)
create index if not exists ix_mentor_entry_summary on mentor_entry (conversation_id, seq) where kind = 'SUMMARY' and erased_at is null;

-- How often words of this tree (a main conversation and its threads) were erased or edited. Only main conversations count.
alter table mentor_conversation add column erasures bigint not null default 0;
-- The count when the present attempt was claimed. Its context is read later, so an end that finds the same count carries no copy of erased words.
alter table agent_run add column context_erasures bigint not null default 0;

create function tree_erasures(conversation uuid) returns bigint language sql stable strict parallel safe as $$
  select m.erasures from mentor_conversation c join mentor_conversation m on m.id = coalesce(c.parent_conversation_id, c.id) where c.id = conversation
$$;
