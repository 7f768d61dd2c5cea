/**
 * Owns: which routes of the sign-in there are: `/auth/me` always, the others where people sign in.
 */
import type { Route } from '../route.ts';
import type { WebDeps } from '../web/deps.ts';
import { getCallback } from './get-callback.ts';
import { getLogin } from './get-login.ts';
import { getMe } from './get-me.ts';
import { getNoAccess } from './get-no-access.ts';
import { postLogout, SIGN_OUT_URL } from './post-logout.ts';

export function signInRoutes({ db, authenticator, signIn }: Pick<WebDeps, 'db' | 'authenticator' | 'signIn'>): readonly Route[] {
  if (!signIn) return [getMe({ db, authenticator, signOutUrl: null })];
  const deps = { db, authenticator, ...signIn };
  return [getMe({ db, authenticator, signOutUrl: SIGN_OUT_URL }), getLogin(deps), getCallback(deps), getNoAccess(), postLogout(deps)];
}
