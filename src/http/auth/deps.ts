/**
 * Owns: what the routes of the sign-in share.
 */
import type { Database } from '../../../db/pool.ts';
import type { SignInDoor } from '../ports.ts';
import type { Authenticator } from './authenticator.ts';
import type { Cookies } from './cookies.ts';
import type { PublicSite } from './public-site.ts';

export interface SignInDeps {
  readonly db: Database;
  readonly authenticator: Authenticator;
  readonly door: SignInDoor;
  readonly site: PublicSite;
  readonly cookies: Cookies;
  /** How long the browser keeps the cookie: the longest life of a session. */
  readonly sessionMaxMs: number;
}
