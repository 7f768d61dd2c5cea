/**
 * Owns: `HEPH_AUTH=oidc`: a request is an account's by the session cookie of its browser, or by the Bearer token of its program.
 * A token is sent on purpose, so it needs no Origin; a cookie is sent by the browser, so it does. With both, the token counts.
 */
import type Koa from 'koa';
import { touchSession } from '../../../db/people/sessions.ts';
import type { Database } from '../../../db/pool.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { secretHash } from '../../kernel/secret-hash.ts';
import type { BearerDoor } from '../ports.ts';
import type { Asker, Authenticator } from './authenticator.ts';
import type { Cookies } from './cookies.ts';
import type { PublicSite } from './public-site.ts';

export interface SignedInOptions {
  readonly db: Database;
  readonly site: PublicSite;
  readonly cookies: Cookies;
  readonly sessionIdleMs: number;
  /** null: this installation takes no tokens. */
  readonly bearer: BearerDoor | null;
}

export const SIGN_IN_URL = '/auth/login';

/** A session that was used within this time is not written again. */
const TOUCH_AFTER_MAX_MS = 60_000;
const TOUCHES_PER_IDLE = 10;

export function signedInAuthenticator({ db, site, cookies, sessionIdleMs: idleMs, bearer }: SignedInOptions): Authenticator {
  const touchAfterMs = Math.min(TOUCH_AFTER_MAX_MS, idleMs / TOUCHES_PER_IDLE);

  async function byToken(ctx: Koa.Context, token: string): Promise<Asker> {
    try {
      if (!bearer) throw new RuntimeFault('UNAUTHENTICATED', 'This installation takes no Bearer tokens. Sign in with a browser.');
      const { accountId, untilMs } = await bearer.verify(token);
      return { accountId, proof: { sessionId: null, untilMs } };
    } catch (error) {
      if (error instanceof RuntimeFault && error.code === 'UNAUTHENTICATED') ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"');
      throw error;
    }
  }

  async function byCookie(ctx: Koa.Context): Promise<Asker> {
    const secret = cookies.read(ctx, 'session');
    const sessionId = secret && secretHash(secret);
    const accountId = sessionId ? await touchSession(db, { sessionId, idleMs, touchAfterMs }) : null;
    if (accountId) return { accountId, proof: { sessionId, untilMs: null } };
    throw new RuntimeFault('SIGNED_OUT', 'Nobody is signed in here, or the session has ended. Sign in.', {
      extra: { signInUrl: SIGN_IN_URL },
    });
  }

  return {
    admit: (ctx) => site.requireHost(ctx),
    async authenticate(ctx) {
      site.requireHost(ctx);
      const [, token] = /^Bearer +(\S+)$/i.exec(ctx.get('authorization').trim()) ?? [];
      if (token !== undefined) return byToken(ctx, token);
      site.requireOwnPage(ctx);
      return byCookie(ctx);
    },
  };
}
