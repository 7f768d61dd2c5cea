/** `GET …/mentor/search?q=&conversationId=&limit=`: finds questions, answers and digests of the member's own conversations. */
import { ownsConversation } from '../../../db/ledger/conversation.ts';
import { search } from '../../../db/search/search.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { WebSearchResponse } from '../../contract/web.ts';
import type { ConversationId } from '../../kernel/ids.ts';
import { excerptOf, parseSearch } from '../../kernel/search-text.ts';
import { requireMember } from '../auth/authenticator.ts';
import { InputFault, pathId, queryInteger } from '../input.ts';
import type { Route } from '../route.ts';
import { NO_CONVERSATION, noConversation, type WebDeps } from './deps.ts';

export function getSearch({ db, authenticator }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/search',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const terms = parseSearch(queryText(ctx.query['q']));
      const hitsMax = queryInteger(ctx.query, 'limit', { min: 1, max: LIMITS.searchHitsMax }) ?? LIMITS.searchHitsMax;
      const conversationId = conversationOf(ctx.query['conversationId']);
      if (conversationId !== null && !(await ownsConversation(db, member, conversationId))) throw noConversation();
      const { hits, truncated } = await search(db, { member, conversationId, terms, hitsMax });
      const texts = terms.wanted.map(({ text }) => text);
      ctx.body = {
        truncated,
        hits: hits.map(({ words, ...hit }) => {
          const { excerpt, matches } = excerptOf(words, texts, LIMITS.searchExcerptMaxChars);
          return { ...hit, excerpt, matches: [...matches] };
        }),
      } satisfies WebSearchResponse;
    },
  };
}

function queryText(value: unknown): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= LIMITS.searchQueryMaxChars) return value;
  throw new InputFault([{ path: 'q', message: `must be one text of 1 to ${LIMITS.searchQueryMaxChars} characters` }]);
}

function conversationOf(value: unknown): ConversationId | null {
  if (value === undefined) return null;
  return pathId<'conversation'>(typeof value === 'string' ? value : undefined, 'CONVERSATION_NOT_FOUND', NO_CONVERSATION);
}
