/**
 * Owns: signing in at the issuer (OpenID Connect, code flow with PKCE, state and nonce) and out.
 * The verifier and the nonce are made from a secret that only the browser has, and from the state. So a sign-in ends only in the browser in
 * which it began, a stolen callback is worth nothing elsewhere, and neither is a copy of our tables. Several tabs share the secret.
 * Does not own: cookies and pages (src/http/auth), which account a subject is (db/people/identities.ts).
 */
import { createHmac } from 'node:crypto';
import {
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  calculatePKCECodeChallenge,
  fetchUserInfo,
} from 'openid-client';
import type { ChangeSink } from '../../actors/index.ts';
import type { AbsorbedConversation } from '../../db/people/absorb.ts';
import { beginAttempt, takeAttempt } from '../../db/people/attempts.ts';
import { recogniseSubject } from '../../db/people/identities.ts';
import { readOwnAccount } from '../../db/people/members.ts';
import { endSession, startSession } from '../../db/people/sessions.ts';
import type { Database } from '../../db/pool.ts';
import type { SignInRefusal } from '../contract/people.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { type AccountId, newSecret } from '../kernel/ids.ts';
import { errorKind, type Log } from '../kernel/log.ts';
import { secretHash } from '../kernel/secret-hash.ts';
import { isIssuerAway, isSubject, type PersonClaims, toFacts } from './claims.ts';
import type { Issuer } from './issuer.ts';

export interface SignInOptions {
  readonly db: Database;
  readonly issuer: Issuer;
  /** Told of conversations that came to an account with a sign-in. */
  readonly changes: ChangeSink;
  readonly log: Log;
  /** Where the issuer sends the browser back to, and where it goes after a sign-out there. */
  readonly callbackUrl: URL;
  readonly homeUrl: URL;
  readonly scopes: string;
  readonly sessionMaxMs: number;
  readonly sessionIdleMs: number;
  /** Of new accounts. */
  readonly timeZone: string;
}

export type SignInResult =
  /** `secret` is the session's, for the browser's cookie. `hasWorkspace` is false for somebody whom nobody has invited. */
  | { readonly kind: 'signed-in'; readonly secret: string; readonly returnPath: string; readonly hasWorkspace: boolean }
  | { readonly kind: 'refused'; readonly reason: SignInRefusal };

/** How long a person may take at the issuer. */
export const ATTEMPT_TTL_MS = 600_000;
const ATTEMPTS_PER_BROWSER_MAX = 10;
const ATTEMPTS_MAX = 10_000;
export const SESSIONS_PER_ACCOUNT_MAX = 50;

class TokenError extends Error {
  override readonly name = 'TokenError';
}

const refused = (reason: SignInRefusal): SignInResult => ({ kind: 'refused', reason });

export class SignIn {
  readonly #options: SignInOptions;

  constructor(options: SignInOptions) {
    this.#options = options;
  }

  /** Where the browser goes to sign in. `browser` is its secret. Throws SIGN_IN_UNAVAILABLE. */
  async begin({ browser, returnPath }: { readonly browser: string; readonly returnPath: string }): Promise<URL> {
    const { db, issuer, callbackUrl, scopes } = this.#options;
    const configuration = await issuer.configuration();
    const state = newSecret();
    const { verifier, nonce } = derive(browser, state);
    await beginAttempt(db, {
      ...{ stateHash: secretHash(state), browserHash: secretHash(browser), returnPath, ttlMs: ATTEMPT_TTL_MS },
      ...{ perBrowserMax: ATTEMPTS_PER_BROWSER_MAX, totalMax: ATTEMPTS_MAX },
    });
    return buildAuthorizationUrl(configuration, {
      ...{ response_type: 'code', redirect_uri: callbackUrl.href, scope: scopes, state, nonce },
      ...{ code_challenge: await calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
    });
  }

  /** What came back from the issuer, in the query of the callback. `replaces`: the session that the browser had. */
  async finish(back: { readonly browser: string | null; readonly query: string; readonly replaces: string | null }): Promise<SignInResult> {
    const { db, log } = this.#options;
    const state = new URLSearchParams(back.query).get('state');
    if (back.browser === null || !state) return refused('expired');
    const attempt = await takeAttempt(db, { stateHash: secretHash(state), browserHash: secretHash(back.browser) });
    if (!attempt) return refused('expired');
    let claims: PersonClaims;
    try {
      claims = await this.#exchange(back.query, { state, ...derive(back.browser, state) });
    } catch (error) {
      const reason = reasonOf(error);
      log.warn('sign_in_refused', { reason, kind: errorKind(error) });
      return refused(reason);
    }
    return this.#welcome(claims, { returnPath: attempt.returnPath, replaces: back.replaces });
  }

  /** Ends the session. The URL at which the browser can sign out at the issuer too; null: the issuer has none, or does not answer. */
  async signOut(sessionId: string | null): Promise<string | null> {
    if (sessionId !== null) await endSession(this.#options.db, sessionId);
    const configuration = await this.#options.issuer.configuration().catch(() => null);
    if (!configuration?.serverMetadata().end_session_endpoint) return null;
    return buildEndSessionUrl(configuration, { post_logout_redirect_uri: this.#options.homeUrl.href }).href;
  }

  /** Everything that the issuer must get right is checked in here: state, PKCE, signature, issuer, audience, times, nonce. */
  async #exchange(
    query: string,
    own: { readonly state: string; readonly verifier: string; readonly nonce: string },
  ): Promise<PersonClaims> {
    const { issuer, callbackUrl } = this.#options;
    const configuration = await issuer.configuration();
    const tokens = await authorizationCodeGrant(configuration, new URL(`?${query}`, callbackUrl), {
      ...{ expectedState: own.state, expectedNonce: own.nonce, pkceCodeVerifier: own.verifier, idTokenExpected: true },
    });
    const claims = tokens.claims() as PersonClaims;
    if (!isSubject(claims.sub)) throw new TokenError('no subject that can be one');
    if (claims.email !== undefined || !configuration.serverMetadata().userinfo_endpoint) return claims;
    // Some issuers put the email there only. It must be the same subject.
    const more = await fetchUserInfo(configuration, tokens.access_token, claims.sub);
    // An email and whether it is verified come from the same answer.
    return { ...claims, name: claims['name'] ?? more.name, email: more.email, email_verified: more.email_verified };
  }

  async #welcome(claims: PersonClaims, { returnPath, replaces }: { returnPath: string; replaces: string | null }): Promise<SignInResult> {
    const { db, log, timeZone, sessionMaxMs: maxMs, sessionIdleMs: idleMs } = this.#options;
    const { accountId, absorbed } = await recogniseSubject(db, { ...toFacts(claims), timeZone });
    this.#tell(accountId, absorbed);
    const secret = newSecret();
    const sessionId = secretHash(secret);
    const started = await startSession(db, { sessionId, accountId, replaces, maxMs, idleMs, perAccountMax: SESSIONS_PER_ACCOUNT_MAX });
    if (!started) return refused('erased');
    log.info('signed_in', { accountId });
    const own = await readOwnAccount(db, accountId);
    return { kind: 'signed-in', secret, returnPath, hasWorkspace: (own?.workspaces.length ?? 0) > 0 };
  }

  #tell(accountId: AccountId, absorbed: readonly AbsorbedConversation[]): void {
    for (const { runIds, ...conversation } of absorbed) {
      const { workspaceId, conversationId, version, turnIds, entryIds } = conversation;
      const ids = { turnIds: [...turnIds], entryIds: [...entryIds], sealedRunIds: [...runIds] };
      this.#options.changes.publish({ workspaceId, conversationId, accountId, version, ...ids, slots: runIds.length > 0 });
    }
  }
}

function derive(browser: string, state: string): { readonly verifier: string; readonly nonce: string } {
  const make = (what: string) => createHmac('sha256', browser).update(`heph sign-in ${what} ${state}`).digest('base64url');
  return { verifier: make('verifier'), nonce: make('nonce') };
}

/** Never the words of the issuer. */
function reasonOf(error: unknown): SignInRefusal {
  if (error instanceof AuthorizationResponseError) {
    if (error.error === 'access_denied') return 'denied';
    return ['server_error', 'temporarily_unavailable'].includes(error.error) ? 'unreachable' : 'invalid';
  }
  if (error instanceof RuntimeFault) return 'unreachable';
  return isIssuerAway(error) ? 'unreachable' : 'invalid';
}
