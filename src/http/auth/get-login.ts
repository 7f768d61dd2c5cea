/** `GET /auth/login?return=/path`: sends the browser to the issuer. A browser keeps one secret for all sign-ins of its tabs. */
import { RuntimeFault } from '../../kernel/faults.ts';
import { newSecret } from '../../kernel/ids.ts';
import type { Route } from '../route.ts';
import type { SignInDeps } from './deps.ts';
import { answerPage, REFUSALS } from './pages.ts';
import { returnPath } from './return-path.ts';
import { SIGN_IN_URL } from './signed-in.ts';

/** The secret outlives the sign-in that was begun last. */
const BROWSER_MAX_AGE_MS = 1_200_000;

export function getLogin({ door, site, cookies }: Pick<SignInDeps, 'door' | 'site' | 'cookies'>): Route {
  return {
    method: 'GET',
    path: SIGN_IN_URL,
    async handle(ctx) {
      site.requireNavigation(ctx);
      const secret = cookies.read(ctx, 'browser') ?? newSecret();
      try {
        const url = await door.begin({ browser: secret, returnPath: returnPath(ctx.query['return']) });
        cookies.write(ctx, 'browser', { secret, maxAgeMs: BROWSER_MAX_AGE_MS });
        ctx.status = 303;
        ctx.set('Location', url.href);
      } catch (error) {
        if (!(error instanceof RuntimeFault) || error.code !== 'SIGN_IN_UNAVAILABLE') throw error;
        answerPage(ctx, REFUSALS.unreachable);
      }
    },
  };
}
