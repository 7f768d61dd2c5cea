/** `GET …/mentor/conversations/{id}`: one conversation of the member, main or thread, however many there are. */
import { readOwnConversation } from '../../../db/web/read-conversations.ts';
import type { Conversation } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import { pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_CONVERSATION, noConversation, type WebDeps, withStages } from './deps.ts';

export function getOwnConversation({ db, authenticator, stages }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/conversations/:conversationId',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const id = pathId<'conversation'>(param(ctx, 'conversationId'), 'CONVERSATION_NOT_FOUND', NO_CONVERSATION);
      const conversation = await readOwnConversation(db, member, id);
      if (!conversation) throw noConversation();
      ctx.body = withStages(conversation, stages) satisfies Conversation;
    },
  };
}
