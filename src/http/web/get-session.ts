/** `GET /session?workspace=slug`: what the page must know before it can draw itself. Without a slug: the account's first workspace. */
import { readSession } from '../../../db/web/read-session.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { Session } from '../../contract/web.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { SLUG, workspaceNotFound } from '../auth/authenticator.ts';
import type { Route } from '../route.ts';
import type { WebDeps } from './deps.ts';

export function getSession({ db, authenticator, session }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/session',
    async handle(ctx) {
      const { accountId } = await authenticator.authenticate(ctx);
      const slug = ctx.query['workspace'] ?? null;
      if (slug !== null && !(typeof slug === 'string' && SLUG.test(slug))) throw workspaceNotFound();
      const found = await readSession(db, accountId, slug);
      if (!found && slug !== null) throw workspaceNotFound();
      if (!found) throw new RuntimeFault('FORBIDDEN', 'This account belongs to no workspace. Ask for an invitation.');
      ctx.body = {
        assistantName: session.assistantName,
        ...found,
        warnings: [...session.warnings()],
        limits: { questionMaxChars: LIMITS.questionMaxChars, maxFollowUps: session.maxFollowUps },
      } satisfies Session;
    },
  };
}
