/**
 * Owns: searching the person's messages while they type: the newest words win, and a pause goes before each request.
 */
import { useEffect, useState } from 'react';
import { LIMITS } from '../../contract/limits.ts';
import type { WebSearchResponse } from '../../contract/web.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';

export type SearchHit = WebSearchResponse['hits'][number];

export interface Search {
  readonly kind: 'idle' | 'searching' | 'found' | 'failed';
  readonly hits: readonly SearchHit[];
  /** There are more than these. */
  readonly truncated: boolean;
  /** Why it failed; empty otherwise. */
  readonly problem: string;
}

const pauseMs = 200;
/** A single letter finds everything and nothing. */
const wordsMinChars = 2;
const idle: Search = { kind: 'idle', hits: [], truncated: false, problem: '' };

export function useSearch(query: string): Search {
  const { api } = usePage();
  const [search, setSearch] = useState<Search>(idle);
  const words = query.trim();
  const searches = words.length >= wordsMinChars && words.length <= LIMITS.searchQueryMaxChars;
  useEffect(() => {
    if (!searches) return setSearch(idle);
    // What was found before stays until something newer is there, so that the list does not blink with each letter.
    setSearch((known) => ({ ...known, kind: 'searching', problem: '' }));
    let current = true;
    const timer = setTimeout(async () => {
      const result = await api.search(words);
      if (!current) return;
      if (result.ok) setSearch({ kind: 'found', hits: result.value.hits, truncated: result.value.truncated, problem: '' });
      else setSearch({ ...idle, kind: 'failed', problem: t.failure(result.failure) });
    }, pauseMs);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [api, words, searches]);
  return search;
}
