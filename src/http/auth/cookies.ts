/**
 * Owns: the two cookies of the sign-in. Each holds a secret of 256 random bits and nothing else.
 * Over https their names begin with `__Host-`: a browser takes and sends them for this host only, over https only, and no other host, not even
 * a subdomain, can set them. Over http, which is for this machine only, browsers do not allow that name; there a cookie is seen by every port.
 * Lax: a link from elsewhere opens the page signed in, and the way back from the issuer works; a write from elsewhere carries none.
 */
import type Koa from 'koa';

export type CookieName = 'session' | 'browser';

const NAMES: Readonly<Record<CookieName, string>> = { session: 'heph_session', browser: 'heph_signin' };
/** What `newSecret` makes. Anything else is no cookie of ours. */
const SECRET = /^[A-Za-z0-9_-]{43}$/;

export class Cookies {
  readonly #secure: boolean;

  constructor(secure: boolean) {
    this.#secure = secure;
  }

  nameOf(name: CookieName): string {
    return this.#secure ? `__Host-${NAMES[name]}` : NAMES[name];
  }

  /** The secret; null when there is none that could be ours. */
  read(ctx: Koa.Context, name: CookieName): string | null {
    const prefix = `${this.nameOf(name)}=`;
    for (const part of (ctx.req.headers.cookie ?? '').split(';')) {
      const pair = part.trim();
      if (pair.startsWith(prefix) && SECRET.test(pair.slice(prefix.length))) return pair.slice(prefix.length);
    }
    return null;
  }

  write(ctx: Koa.Context, name: CookieName, cookie: { readonly secret: string; readonly maxAgeMs: number }): void {
    const age = Math.floor(cookie.maxAgeMs / 1_000);
    const secure = this.#secure ? '; Secure' : '';
    ctx.append('Set-Cookie', `${this.nameOf(name)}=${cookie.secret}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax${secure}`);
  }

  clear(ctx: Koa.Context, name: CookieName): void {
    this.write(ctx, name, { secret: '', maxAgeMs: 0 });
  }
}
