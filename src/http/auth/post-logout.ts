/**
 * `POST /auth/logout`: ends the session of this browser. A repeat does no harm. A program gets JSON: `issuerSignOutUrl` is where the browser
 * can go to sign out at the issuer, too; a form gets a page that says so.
 */
import type { SignOut } from '../../contract/people.ts';
import { secretHash } from '../../kernel/secret-hash.ts';
import type { Route } from '../route.ts';
import type { SignInDeps } from './deps.ts';
import { answerPage, signedOutPage } from './pages.ts';

export const SIGN_OUT_URL = '/auth/logout';

export function postLogout({ door, site, cookies }: Pick<SignInDeps, 'door' | 'site' | 'cookies'>): Route {
  return {
    method: 'POST',
    path: SIGN_OUT_URL,
    async handle(ctx) {
      site.requireOwnPage(ctx);
      const secret = cookies.read(ctx, 'session');
      const issuerSignOutUrl = await door.signOut(secret && secretHash(secret));
      cookies.clear(ctx, 'session');
      cookies.clear(ctx, 'browser');
      if (ctx.accepts('json', 'html') === 'html') answerPage(ctx, signedOutPage(issuerSignOutUrl));
      else ctx.body = { issuerSignOutUrl } satisfies SignOut;
    },
  };
}
