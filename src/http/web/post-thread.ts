/** `POST …/mentor/threads` {requestId, parentEntryId}: begins a thread at a message; the same requestId gives the same thread again. */
import { beginThread, type ThreadResult } from '../../../db/ledger/threads.ts';
import { readOwnConversation } from '../../../db/web/read-conversations.ts';
import { LIMITS } from '../../contract/limits.ts';
import { type Conversation, postThreadRequestSchema } from '../../contract/web.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { ConversationId, EntryId } from '../../kernel/ids.ts';
import { requireMember } from '../auth/authenticator.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import type { Route } from '../route.ts';
import { noConversation, personErased, type WebDeps, withStages } from './deps.ts';

export function postThread({ db, authenticator, stages }: WebDeps): Route {
  return {
    method: 'POST',
    path: '/workspaces/:slug/mentor/threads',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const { requestId, parentEntryId } = parseInput(
        postThreadRequestSchema,
        await readJsonBody(ctx, { maxBytes: LIMITS.webBodyMaxBytes }),
      );
      const begun = await beginThread(db, { ...member, requestId, parentEntryId: parentEntryId as EntryId });
      const thread = await readOwnConversation(db, member, threadOf(begun));
      if (!thread) throw noConversation();
      ctx.status = 201;
      ctx.body = withStages(thread, stages) satisfies Conversation;
    },
  };
}

function threadOf(begun: ThreadResult): ConversationId {
  switch (begun.kind) {
    case 'thread':
      return begun.conversationId;
    case 'no-entry':
      throw new RuntimeFault('ENTRY_NOT_FOUND', 'There is no such message in the main conversation of this account. Load the page again.');
    case 'reused':
      throw new RuntimeFault('REQUEST_ID_REUSED', 'This requestId was used for another message. Begin the thread with a new requestId.');
    case 'erased':
      throw personErased();
  }
}
