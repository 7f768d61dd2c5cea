/**
 * A server where people sign in, behind a proxy that ends TLS, with an issuer of its own. Put together by src/server-people.ts, as main.ts does.
 */
import type { ChangeSink } from '../../actors/index.ts';
import type { Database } from '../../db/pool.ts';
import { readConfig } from '../../src/config.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { openPeople, type PeopleParts } from '../../src/server-people.ts';
import { type HttpRig, type RigOptions, useRigs } from './http-rig.ts';
import { CLIENT, SpecIssuer } from './issuer.ts';
import { SignInBrowser } from './sign-in-browser.ts';

export const ORIGIN = 'https://heph.example';

export interface SignInRig {
  readonly issuer: SpecIssuer;
  readonly people: PeopleParts;
  readonly rig: HttpRig;
  browser(): SignInBrowser;
  /** A browser in which the issuer's person of the moment has signed in. */
  signedIn(): Promise<SignInBrowser>;
  /** Makes the person with this email a member of the rig's workspace. */
  invite(email: string, role?: 'member' | 'admin' | 'operator'): Promise<void>;
}

export interface SignInRigOptions extends RigOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly origin?: string;
}

/** The settings of the sign-in with this issuer. */
export function signInEnv(issuer: SpecIssuer, origin = ORIGIN): Record<string, string> {
  return {
    HEPH_AUTH: 'oidc',
    HEPH_PUBLIC_URL: origin,
    HEPH_OIDC_ISSUER: issuer.url,
    HEPH_OIDC_CLIENT_ID: CLIENT.id,
    HEPH_OIDC_CLIENT_SECRET: CLIENT.secret,
    HEPH_JWT_AUDIENCE: 'heph',
  };
}

/** Registers hooks that close what a test opened. */
export function useSignIn(database: { readonly db: Database; readonly url: string }): (options?: SignInRigOptions) => Promise<SignInRig> {
  const openRig = useRigs(database);
  const issuers: SpecIssuer[] = [];
  afterEach(async () => {
    await Promise.all(issuers.splice(0).map((issuer) => issuer.close()));
  });
  return async ({ env = {}, origin = ORIGIN, ...options } = {}) => {
    const issuer = await SpecIssuer.start();
    issuers.push(issuer);
    const config = readConfig({ ...signInEnv(issuer, origin), ...env }, '/nowhere');
    const changes: ChangeSink = { publish: (change) => rig.live.changes.publish(change) };
    const people = await openPeople({ config, db: database.db, log: silentLog, changes });
    const rig: HttpRig = await openRig({ ...options, people });
    const browser = () => new SignInBrowser({ origin, port: rig.webPort });
    return {
      ...{ issuer, people, rig, browser },
      async signedIn() {
        const one = browser();
        await one.open('/auth/login?return=/openapi.json');
        return one;
      },
      invite: (email, role = 'member') => people.admin.addMember({ email, workspace: rig.slug, role }),
    };
  };
}
