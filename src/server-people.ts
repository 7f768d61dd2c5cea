/**
 * Owns: putting together how people sign in to a server, by HEPH_AUTH, and who administers them.
 */
import type { ChangeSink } from '../actors/index.ts';
import type { Database } from '../db/pool.ts';
import { localMember } from '../db/web/local-member.ts';
import type { Config, OidcConfig } from './config.ts';
import {
  type Authenticator,
  type BrowserKey,
  CALLBACK_PATH,
  Cookies,
  localAuthenticator,
  PublicSite,
  signedInAuthenticator,
  type WebListenerOptions,
} from './http/index.ts';
import { systemClock } from './kernel/clock.ts';
import type { Log } from './kernel/log.ts';
import { BearerTokens, Issuer, PeopleAdmin, SignIn, SignInSweeper } from './people/index.ts';

export interface PeopleParts {
  readonly authenticator: Authenticator;
  /** Absent with HEPH_AUTH=local. */
  readonly signIn?: NonNullable<WebListenerOptions['signIn']>;
  readonly admin: PeopleAdmin;
  readonly sweeper: SignInSweeper;
}

interface Deps {
  readonly config: Config;
  readonly db: Database;
  readonly log: Log;
  readonly changes: ChangeSink;
  /** null: a request from this machine is the account. */
  readonly browserKey?: BrowserKey | null;
}

export async function openPeople({ config, db, log, changes, browserKey = null }: Deps): Promise<PeopleParts> {
  const { auth, timeZone } = config;
  const rest = { admin: new PeopleAdmin({ db, timeZone }), sweeper: new SignInSweeper({ db, clock: systemClock, log }) };
  if (auth.kind === 'oidc') return { ...oidcDoors(auth, { config, db, log, changes }), ...rest };
  const { accountId } = await localMember(db, { displayName: config.accountName, timeZone });
  return { authenticator: localAuthenticator(accountId, browserKey), ...rest };
}

function oidcDoors(
  auth: OidcConfig,
  { config, db, log, changes }: Omit<Deps, 'browserKey'>,
): Pick<PeopleParts, 'authenticator' | 'signIn'> {
  const { publicUrl, clientId, clientSecret, scopes, sessionMaxMs, sessionIdleMs } = auth;
  const [site, cookies] = [new PublicSite(publicUrl), new Cookies(publicUrl.protocol === 'https:')];
  const issuerOf = (issuer: URL) => new Issuer({ issuer, clientId, clientSecret, clock: systemClock, log });
  const issuer = issuerOf(auth.issuer);
  const door = new SignIn({
    ...{ db, issuer, log, changes, scopes, sessionMaxMs, sessionIdleMs, timeZone: config.timeZone },
    ...{ callbackUrl: new URL(CALLBACK_PATH, publicUrl), homeUrl: publicUrl },
  });
  const metadata = auth.bearer?.issuer.href === auth.issuer.href ? issuer : auth.bearer && issuerOf(auth.bearer.issuer);
  const bearer = auth.bearer && metadata ? new BearerTokens({ db, ...auth.bearer, metadata }) : null;
  return {
    authenticator: signedInAuthenticator({ db, site, cookies, sessionIdleMs, bearer }),
    signIn: { door, site, cookies, sessionMaxMs },
  };
}
