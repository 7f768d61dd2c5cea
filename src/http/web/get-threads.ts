/** `GET …/mentor/threads`: the account's open threads, newest first. */
import { readThreads } from '../../../db/web/read-conversations.ts';
import type { ThreadList } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import type { Route } from '../route.ts';
import { type WebDeps, withStages } from './deps.ts';

export function getThreads({ db, authenticator, stages }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/threads',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const threads = await readThreads(db, member);
      ctx.body = { threads: threads.map((thread) => withStages(thread, stages)) } satisfies ThreadList;
    },
  };
}
