/**
 * Owns: signing in on the operators' site: the routes of the web's sign-in (../auth), on the name of HEPH_OPS_PUBLIC_URL. Whoever signs in
 * comes back to the page of operators; what they may do there is asked with each request.
 */
import type Koa from 'koa';
import type { Cookies } from '../auth/cookies.ts';
import { getCallback } from '../auth/get-callback.ts';
import { getLogin } from '../auth/get-login.ts';
import { postLogout } from '../auth/post-logout.ts';
import type { PublicSite } from '../auth/public-site.ts';
import { SIGN_IN_URL } from '../auth/signed-in.ts';
import type { SignInDoor } from '../ports.ts';
import type { Route } from '../route.ts';
import { OPS_SIGN_IN_URL } from './operator-door.ts';

/** There is nothing else for a person on this listener. */
const PAGE = '/ops';

export interface OpsSignIn {
  readonly door: SignInDoor;
  readonly site: PublicSite;
  readonly cookies: Cookies;
  readonly sessionMaxMs: number;
}

export function opsSignInRoutes(signIn: OpsSignIn): readonly Route[] {
  const { site, door } = signIn;
  // An operator needs no workspace, so nobody is sent to the page that asks for one.
  const finish: SignInDoor['finish'] = async (back) => {
    const result = await door.finish(back);
    return result.kind === 'signed-in' ? { ...result, hasWorkspace: true } : result;
  };
  const comesBack: SignInDoor['begin'] = ({ browser, returnPath }) =>
    door.begin({ browser, returnPath: returnPath === '/' ? PAGE : returnPath });
  const deps = { ...signIn, door: { begin: comesBack, signOut: door.signOut.bind(door), finish } };
  const onSite = (route: Route): Route => ({
    ...route,
    handle(ctx: Koa.Context) {
      site.requireHost(ctx);
      return route.handle(ctx);
    },
  });
  const begin: Route = {
    method: 'GET',
    path: OPS_SIGN_IN_URL,
    handle(ctx) {
      ctx.status = 303;
      ctx.set('Location', SIGN_IN_URL);
    },
  };
  return [begin, getLogin(deps), getCallback(deps), postLogout(deps)].map(onSite);
}
