/**
 * Owns: what `search_conversation` answers the model: hits of the person's own conversations, with the times as the model reads them.
 * Does not own: which entries match (db/search), the fence (the caller judges it).
 */
import type { Database } from '../../db/pool.ts';
import { readSearcher, search } from '../../db/search/search.ts';
import type { SearchRequest, SearchResponse } from '../contract/agent.ts';
import { LIMITS } from '../contract/limits.ts';
import type { RunId } from '../kernel/ids.ts';
import { excerptOf, parseSearch } from '../kernel/search-text.ts';
import { dayAndTime } from './times.ts';

/** null: there is no such run. */
export async function searchForRun(db: Database, runId: RunId, { query, scope }: SearchRequest): Promise<SearchResponse | null> {
  const searcher = await readSearcher(db, runId);
  if (!searcher) return null;
  const { member, timeZone, conversationId, mainId } = searcher;
  const terms = parseSearch(query);
  const within = { main: mainId, thread: conversationId, tree: null }[scope];
  const { hits, truncated } = await search(db, { member, conversationId: within, terms, hitsMax: LIMITS.searchHitsMax });
  const texts = terms.wanted.map(({ text }) => text);
  return {
    truncated,
    hits: hits.map((hit) => ({
      entryId: hit.entryId,
      conversationId: hit.conversationId,
      kind: hit.kind,
      at: dayAndTime(hit.createdAt, timeZone),
      text: excerptOf(hit.words, texts, LIMITS.searchExcerptMaxChars).excerpt,
    })),
  };
}
