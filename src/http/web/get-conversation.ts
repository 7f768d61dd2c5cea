/** `GET …/mentor/conversation`: the account's main conversation; 404 before its first question. */
import { readConversation } from '../../../db/web/read-conversations.ts';
import type { Conversation } from '../../contract/web.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { requireMember } from '../auth/authenticator.ts';
import type { Route } from '../route.ts';
import { type WebDeps, withStage } from './deps.ts';

export function getConversation({ db, authenticator, stages }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/conversation',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const conversation = await readConversation(db, member);
      if (!conversation) throw new RuntimeFault('CONVERSATION_NOT_FOUND', 'This account has asked nothing yet. Ask the first question.');
      ctx.body = { ...conversation, turns: conversation.turns.map((turn) => withStage(turn, stages)) } satisfies Conversation;
    },
  };
}
