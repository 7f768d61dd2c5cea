/**
 * Owns: the search_conversation tool: what the model is told about it, and how hits are shown, each with an id that it can cite.
 * Does not own: what is found (the server searches the words that the app shows).
 */
import type { SearchHit, SearchResponse, SearchScope } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { isBlank } from '../../src/kernel/text.ts';
import type { Fate } from '../fate.ts';
import type { RunClient } from '../gateway-client.ts';
import type { ToolDefinition } from '../pi.ts';
import { answered } from './ask-server.ts';
import { wellFormedResult } from './result.ts';

const DESCRIPTION = [
  'Search the questions, answers and weekly digests of this conversation, also those that are no longer shown here.',
  `Returns at most ${LIMITS.searchHitsMax} entries, best first, each with the id by which it can be cited.`,
].join(' ');
const PARAMETERS = {
  type: 'object',
  properties: {
    query: { type: 'string', minLength: 1, maxLength: LIMITS.searchQueryMaxChars, description: 'Words to look for' },
    scope: {
      type: 'string',
      enum: ['main', 'thread', 'tree'],
      description:
        'main: the main conversation. thread: this conversation only. tree: the main conversation and all of its threads (default)',
    },
  },
  required: ['query'],
};

export interface SearchToolOptions {
  readonly client: Pick<RunClient, 'search'>;
  readonly fate: Fate;
  readonly conversationId: () => string;
}

/** The tool for one attempt. */
export function createSearchTool(options: SearchToolOptions): ToolDefinition {
  return {
    name: 'search_conversation',
    label: 'search_conversation',
    description: DESCRIPTION,
    parameters: PARAMETERS,
    execute: async (_callId, params, signal) => {
      const { query, scope = 'tree' } = params as { query: string; scope?: SearchScope };
      if (isBlank(query)) throw new Error('Say which words to look for.');
      const result = await options.client.search({ query, scope }, signal ?? new AbortController().signal);
      const found = answered(result, { fate: options.fate, refusal: () => 'This conversation cannot be searched here.' });
      return wellFormedResult({ content: [{ type: 'text', text: present(found, options.conversationId()) }] });
    },
  };
}

function present({ hits, truncated }: SearchResponse, here: string): string {
  if (hits.length === 0) return 'Nothing was found. Try fewer or other words.';
  const head = hits.length === 1 ? '1 entry was found.' : `${hits.length} entries were found, best first.`;
  const more = truncated ? ['There are more. Use more particular words to see them.'] : [];
  return [head, ...hits.map((hit) => presentHit(hit, here)), ...more].join('\n\n');
}

/** `[0199…] answer, Thu 2026-10-08 09:12 Europe/Berlin, in another thread` and the words. */
function presentHit(hit: SearchHit, here: string): string {
  const where = hit.conversationId === here ? '' : ', in another part of the conversation';
  return `[${hit.entryId}] ${hit.kind}, ${hit.at}${where}\n${hit.text}`;
}
