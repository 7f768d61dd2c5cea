/** `GET /auth/callback`: the browser comes back from the issuer. It gets a new session, and the one that it had ends. */
import { secretHash } from '../../kernel/secret-hash.ts';
import type { Route } from '../route.ts';
import type { SignInDeps } from './deps.ts';
import { NO_ACCESS_PATH } from './get-no-access.ts';
import { answerPage, REFUSALS } from './pages.ts';

export const CALLBACK_PATH = '/auth/callback';

export function getCallback({ door, site, cookies, sessionMaxMs }: Omit<SignInDeps, 'db' | 'authenticator'>): Route {
  return {
    method: 'GET',
    path: CALLBACK_PATH,
    async handle(ctx) {
      site.requireNavigation(ctx);
      const before = cookies.read(ctx, 'session');
      const result = await door.finish({
        browser: cookies.read(ctx, 'browser'),
        query: ctx.querystring,
        replaces: before && secretHash(before),
      });
      if (result.kind === 'refused') {
        answerPage(ctx, REFUSALS[result.reason]);
        return;
      }
      cookies.write(ctx, 'session', { secret: result.secret, maxAgeMs: sessionMaxMs });
      ctx.status = 303;
      ctx.set('Location', result.hasWorkspace ? result.returnPath : NO_ACCESS_PATH);
    },
  };
}
