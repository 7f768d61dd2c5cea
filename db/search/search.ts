/**
 * Owns: the one search of a person's conversations, for the person and for the model (spec/decisions/0018): questions, answers and digests that
 * are not erased. All words first; when they find nothing, the words as typed, anywhere; then any of the words.
 * rule: R16 (only conversations of this account in this workspace, while it is an active, visible member)
 */
import { z } from 'zod';
import type { AccountId, ConversationId, EntryId, RunId, WorkspaceId } from '../../src/kernel/ids.ts';
import type { SearchTerms } from '../../src/kernel/search-text.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from '../web/membership.ts';

export interface SearchParams {
  readonly member: MemberKey;
  /** null: the main conversation and all of its threads. */
  readonly conversationId: ConversationId | null;
  readonly terms: SearchTerms;
  readonly hitsMax: number;
}

export interface Hit {
  readonly entryId: EntryId;
  readonly conversationId: ConversationId;
  readonly kind: 'question' | 'answer' | 'digest';
  readonly createdAt: string;
  /** The words that were searched, or their head. */
  readonly words: string;
}

export interface Hits {
  readonly hits: readonly Hit[];
  /** There are more. */
  readonly truncated: boolean;
}

/** Entries that a search without the index looks at, newest first. */
const SCANNED_MAX = 5_000;
/** Words of a hit that are read, in code points: an excerpt is cut from them. */
const WORDS_MAX = 100_000;

const hitRow = z.object({
  id: z.string(),
  conversation_id: z.string(),
  kind: z.enum(['question', 'answer', 'digest']),
  created_at: z.string(),
  words: z.string(),
});

/** Best first: by rank where the index found them, then newest. */
export async function search(db: Executor, params: SearchParams): Promise<Hits> {
  for (const look of [lookForAll, lookForTyped, lookForAny]) {
    const rows = await look(db, params);
    if (rows.length > 0) return toHits(rows, params.hitsMax);
  }
  return { hits: [], truncated: false };
}

function toHits(rows: readonly z.infer<typeof hitRow>[], hitsMax: number): Hits {
  const hits = rows.slice(0, hitsMax).map((row) => ({
    entryId: row.id as EntryId,
    conversationId: row.conversation_id as ConversationId,
    kind: row.kind,
    createdAt: row.created_at,
    words: row.words,
  }));
  return { hits, truncated: rows.length > hitsMax };
}

function scopeOf({ member, conversationId }: SearchParams) {
  return sql.fragment`
    select c.id from mentor_conversation c join workspace_member m on m.workspace_id = c.workspace_id and m.account_id = c.account_id
    where c.workspace_id = ${member.workspaceId}::uuid and c.account_id = ${member.accountId}::uuid and m.active and m.visible
      and (${conversationId}::uuid is null or c.id = ${conversationId}::uuid)`;
}

const shown = sql.fragment`e.kind in ('QUESTION', 'ANSWER', 'DIGEST') and e.erased_at is null`;
const columns = sql.fragment`e.id, e.conversation_id, lower(e.kind) as kind, e.created_at, left(e.search_text, ${WORDS_MAX}::int) as words`;

const lookForAll = (db: Executor, params: SearchParams) => byIndex(db, params, { name: 'search_all', joiner: ' & ' });
const lookForAny = async (db: Executor, params: SearchParams) =>
  params.terms.wanted.length > 1 ? byIndex(db, params, { name: 'search_any', joiner: ' | ' }) : [];

/** A part that has no words for the index (an emoji) is left out there; a query of such parts alone finds nothing. */
function byIndex(db: Executor, params: SearchParams, { name, joiner }: { readonly name: string; readonly joiner: string }) {
  const { wanted, unwanted } = params.terms;
  const texts = wanted.map(({ text }) => text);
  const open = wanted.map((term) => term.open);
  return db.any(sql.prepared(name, hitRow)`
    with scope as materialized (${scopeOf(params)}
    ), wanted as materialized (
      select string_agg('(' || q::text || case when w.open and right(q::text, 1) = '''' then ':*)' else ')' end, ${joiner}::text) as parts
      from unnest(${sql.array(texts, 'text')}, ${sql.array(open, 'bool')}) as w(text, open), phraseto_tsquery('simple', mentor_search_words(w.text)) as q
      where numnode(q) > 0
    ), unwanted as materialized (
      select coalesce(string_agg(' & !(' || q::text || ')', ''), '') as parts
      from unnest(${sql.array(unwanted, 'text')}) as w(text), phraseto_tsquery('simple', mentor_search_words(w.text)) as q where numnode(q) > 0
    ), query as materialized (select ('(' || wanted.parts || ')' || unwanted.parts)::tsquery as q from wanted, unwanted)
    select ${columns} from mentor_entry e
    where e.search_vector @@ (select q from query) and e.conversation_id in (select id from scope) and ${shown}
    order by ts_rank(e.search_vector, (select q from query)) desc, e.created_at desc, e.id desc limit ${params.hitsMax + 1}::int`);
}

/** Finds what no index of words can: a part of a word, signs, emoji; among the newest entries only. */
async function lookForTyped(db: Executor, params: SearchParams) {
  const { typed, wanted, unwanted } = params.terms;
  if (unwanted.length > 0) return [];
  const text = (wanted.length === 1 && wanted[0]?.text) || typed;
  return db.any(sql.prepared('search_typed', hitRow)`
    with scope as materialized (${scopeOf(params)}
    ), newest as materialized (
      select e.id from mentor_entry e where e.conversation_id in (select id from scope) and ${shown}
      order by e.created_at desc, e.id desc limit ${SCANNED_MAX}::int
    )
    select ${columns} from newest join mentor_entry e on e.id = newest.id
    where ${text}::text <> '' and strpos(lower(e.search_text), lower(${text}::text)) > 0
    order by e.created_at desc, e.id desc limit ${params.hitsMax + 1}::int`);
}

export interface SearcherFacts {
  readonly member: MemberKey;
  readonly timeZone: string;
  readonly conversationId: ConversationId;
  readonly mainId: ConversationId;
}

const searcherRow = z.object({
  workspace_id: z.string(),
  account_id: z.string(),
  time_zone: z.string(),
  conversation_id: z.string(),
  main_id: z.string(),
});

/** Whose conversations a run may search; null when there is no such run. */
export async function readSearcher(db: Executor, runId: RunId): Promise<SearcherFacts | null> {
  const row = await db.maybeOne(sql.prepared('search_searcher', searcherRow)`
    select c.workspace_id, c.account_id, a.time_zone, c.id as conversation_id, coalesce(c.parent_conversation_id, c.id) as main_id
    from agent_run r join mentor_conversation c on c.id = r.conversation_id join account a on a.id = c.account_id
    where r.id = ${runId}::uuid`);
  if (!row) return null;
  return {
    member: { workspaceId: row.workspace_id as WorkspaceId, accountId: row.account_id as AccountId },
    timeZone: row.time_zone,
    conversationId: row.conversation_id as ConversationId,
    mainId: row.main_id as ConversationId,
  };
}
