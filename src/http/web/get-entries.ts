/** `GET …/mentor/conversations/{id}/entries?before=&limit=`: a page of entries, newest page first, by keyset on `seq`. */
import { readPage } from '../../../db/web/read-entries.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { EntryPage } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import { pathId, queryInteger } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_CONVERSATION, noConversation, type WebDeps, withStage } from './deps.ts';

export function getEntries({ db, authenticator, stages }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/conversations/:conversationId/entries',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const conversationId = pathId<'conversation'>(param(ctx, 'conversationId'), 'CONVERSATION_NOT_FOUND', NO_CONVERSATION);
      const before = queryInteger(ctx.query, 'before', { min: 1, max: Number.MAX_SAFE_INTEGER });
      const limit = queryInteger(ctx.query, 'limit', { min: 1, max: LIMITS.pageMaxEntries }) ?? LIMITS.pageDefaultEntries;
      const page = await readPage(db, member, { conversationId, before, limit });
      if (!page) throw noConversation();
      ctx.body = { ...page, turns: page.turns.map((turn) => withStage(turn, stages)) } satisfies EntryPage;
    },
  };
}
