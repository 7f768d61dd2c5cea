/**
 * `GET …/mentor/conversations/{id}/entries?before=&limit=`: a page of entries, newest page first, by keyset on `seq`; with `after` instead of
 * `before` the page behind that `seq`.
 */
import { readPage, readPageAfter } from '../../../db/web/read-entries.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { EntryPage } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import { InputFault, pathId, queryInteger } from '../input.ts';
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
      const after = queryInteger(ctx.query, 'after', { min: 0, max: Number.MAX_SAFE_INTEGER });
      if (before !== null && after !== null) throw new InputFault([{ path: 'after', message: 'must not stand beside before' }]);
      const limit = queryInteger(ctx.query, 'limit', { min: 1, max: LIMITS.pageMaxEntries }) ?? LIMITS.pageDefaultEntries;
      const page =
        after === null
          ? await readPage(db, member, { conversationId, before, limit })
          : await readPageAfter(db, member, { conversationId, after, limit });
      if (!page) throw noConversation();
      ctx.body = { ...page, turns: page.turns.map((turn) => withStage(turn, stages)) } satisfies EntryPage;
    },
  };
}
