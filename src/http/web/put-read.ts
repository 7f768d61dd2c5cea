/** `PUT …/mentor/conversation/read` {lastReadAt}: the read marker moves forward; an earlier time changes nothing. */
import { moveRead } from '../../../db/web/move-read.ts';
import { readConversation } from '../../../db/web/read-conversations.ts';
import { LIMITS } from '../../contract/limits.ts';
import { putReadRequestSchema } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import { readJsonBody } from '../body.ts';
import { InputFault, parseInput } from '../input.ts';
import type { Route } from '../route.ts';
import { noConversation, personErased, type WebDeps, withStage } from './deps.ts';

/** Nothing was ever written before. The year 0 is a time to the contract and none to PostgreSQL. */
const EARLIEST = '1970-01-01T00:00:00.000Z';

export function putRead({ db, authenticator, stages, changes }: WebDeps): Route {
  return {
    method: 'PUT',
    path: '/workspaces/:slug/mentor/conversation/read',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const { lastReadAt } = parseInput(putReadRequestSchema, await readJsonBody(ctx, { maxBytes: LIMITS.webBodyMaxBytes }));
      if (lastReadAt < EARLIEST) throw new InputFault([{ path: 'lastReadAt', message: `must not be before ${EARLIEST}` }]);
      const moved = await moveRead(db, member, lastReadAt);
      if (moved.kind === 'erased') throw personErased();
      if (moved.kind === 'no-conversation') throw noConversation();
      const { conversationId, version } = moved;
      if (version !== null) {
        changes.publish({ ...member, conversationId, version, turnIds: [], entryIds: [], sealedRunIds: [], read: true });
      }
      const conversation = await readConversation(db, member);
      if (!conversation) throw noConversation();
      ctx.body = { ...conversation, turns: conversation.turns.map((turn) => withStage(turn, stages)) };
    },
  };
}
