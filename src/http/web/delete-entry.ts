/** `DELETE …/mentor/entries/{entryId}`: erases one message of the member, and every copy of its words. Erasing it again says so again. */
import { readEntryOf } from '../../../db/web/read-entries.ts';
import type { Entry } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import { pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_ENTRY, noEntry, type WebDeps } from './deps.ts';

export function deleteEntry({ runtime, db, authenticator }: WebDeps): Route {
  return {
    method: 'DELETE',
    path: '/workspaces/:slug/mentor/entries/:entryId',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const id = pathId<'entry'>(param(ctx, 'entryId'), 'ENTRY_NOT_FOUND', NO_ENTRY);
      await runtime.eraseEntry(member, id);
      const entry = await readEntryOf(db, member, id);
      if (!entry) throw noEntry();
      ctx.body = entry satisfies Entry;
    },
  };
}
