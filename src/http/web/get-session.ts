/** `GET /session`: what the page must know before it can draw itself. */
import { readSession } from '../../../db/web/read-session.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { Session } from '../../contract/web.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { Route } from '../route.ts';
import type { WebDeps } from './deps.ts';

export function getSession({ db, authenticator, session }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/session',
    async handle(ctx) {
      const found = await readSession(db, await authenticator.authenticate(ctx));
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
