/**
 * `PUT …/mentor/conversation/read` and `PUT …/mentor/conversations/{id}/read` {lastReadAt}: the read marker of the main conversation, or of any,
 * moves forward; an earlier time changes nothing. All devices of the account are told.
 */
import type Koa from 'koa';
import { moveRead } from '../../../db/web/move-read.ts';
import { readOwnConversation } from '../../../db/web/read-conversations.ts';
import { LIMITS } from '../../contract/limits.ts';
import { type Conversation, putReadRequestSchema } from '../../contract/web.ts';
import type { ConversationId } from '../../kernel/ids.ts';
import { requireMember } from '../auth/authenticator.ts';
import { readJsonBody } from '../body.ts';
import { InputFault, parseInput, pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_CONVERSATION, noConversation, personErased, type WebDeps, withStages } from './deps.ts';

/** Nothing was ever written before. The year 0 is a time to the contract and none to PostgreSQL. */
const EARLIEST = '1970-01-01T00:00:00.000Z';

export function putRead(deps: WebDeps): Route {
  return {
    method: 'PUT',
    path: '/workspaces/:slug/mentor/conversation/read',
    handle: (ctx) => answer(deps, ctx, () => null),
  };
}

export function putConversationRead(deps: WebDeps): Route {
  return {
    method: 'PUT',
    path: '/workspaces/:slug/mentor/conversations/:conversationId/read',
    handle: (ctx) =>
      answer(deps, ctx, () => pathId<'conversation'>(param(ctx, 'conversationId'), 'CONVERSATION_NOT_FOUND', NO_CONVERSATION)),
  };
}

type Meant = () => ConversationId | null;

/** `meant` gives null for the main conversation. */
async function answer({ db, authenticator, stages, changes }: WebDeps, ctx: Koa.Context, meant: Meant): Promise<void> {
  const member = await requireMember(ctx, authenticator, db);
  const asked = meant();
  const { lastReadAt } = parseInput(putReadRequestSchema, await readJsonBody(ctx, { maxBytes: LIMITS.webBodyMaxBytes }));
  if (lastReadAt < EARLIEST) throw new InputFault([{ path: 'lastReadAt', message: `must not be before ${EARLIEST}` }]);
  const moved = await moveRead(db, member, { conversationId: asked, lastReadAt });
  if (moved.kind === 'erased') throw personErased();
  if (moved.kind === 'no-conversation') throw noConversation();
  const { conversationId, version } = moved;
  if (version !== null) {
    changes.publish({ ...member, conversationId, version, turnIds: [], entryIds: [], sealedRunIds: [], read: true });
  }
  const conversation = await readOwnConversation(db, member, conversationId);
  if (!conversation) throw noConversation();
  ctx.body = withStages(conversation, stages) satisfies Conversation;
}
