/** `GET …/mentor/entries/{entryId}`: one message of the member, for example the one that a thread is about. */
import { readEntryOf } from '../../../db/web/read-entries.ts';
import type { Entry } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import { pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_ENTRY, noEntry, type WebDeps } from './deps.ts';

export function getEntry({ db, authenticator }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/entries/:entryId',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const entry = await readEntryOf(db, member, pathId<'entry'>(param(ctx, 'entryId'), 'ENTRY_NOT_FOUND', NO_ENTRY));
      if (!entry) throw noEntry();
      ctx.body = entry satisfies Entry;
    },
  };
}
