/** `PUT …/mentor/entries/{entryId}/vote` {vote}: a vote on an answer or a digest; null takes it back. */
import { readEntryOf } from '../../../db/web/read-entries.ts';
import { LIMITS } from '../../contract/limits.ts';
import { type Entry, putVoteRequestSchema } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import { readJsonBody } from '../body.ts';
import { parseInput, pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_ENTRY, noEntry, personErased, type WebDeps } from './deps.ts';

export function putVote({ runtime, db, authenticator }: WebDeps): Route {
  return {
    method: 'PUT',
    path: '/workspaces/:slug/mentor/entries/:entryId/vote',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const id = pathId<'entry'>(param(ctx, 'entryId'), 'ENTRY_NOT_FOUND', NO_ENTRY);
      const { vote } = parseInput(putVoteRequestSchema, await readJsonBody(ctx, { maxBytes: LIMITS.webBodyMaxBytes }));
      const { kind } = await runtime.voteEntry(member, id, vote);
      if (kind === 'person-erased') throw personErased();
      const entry = kind === 'voted' ? await readEntryOf(db, member, id) : null;
      if (!entry) throw noEntry();
      ctx.body = entry satisfies Entry;
    },
  };
}
