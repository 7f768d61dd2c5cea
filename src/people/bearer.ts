/**
 * Owns: Bearer tokens of native clients: a JWT of the issuer, for our audience, signed by one of its keys with one of the allowed algorithms.
 * Its subject must have signed in once in a browser: a token links no account.
 */
import { createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { findIdentity } from '../../db/people/identities.ts';
import type { Executor } from '../../db/pool.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import type { AccountId } from '../kernel/ids.ts';
import { isSubject } from './claims.ts';
import { type Issuer, issuerAway } from './issuer.ts';

export interface BearerOptions {
  readonly db: Executor;
  /** As the token names it. */
  readonly issuer: URL;
  readonly audience: string;
  readonly algorithms: readonly string[];
  /** null: the one that `metadata` names. */
  readonly jwksUrl: URL | null;
  readonly metadata: Pick<Issuer, 'configuration'>;
  /** After a read of the keys, an unknown one is looked for again no sooner. */
  readonly keysCooldownMs?: number;
  readonly timeoutMs?: number;
}

/** Whose token it is, and when it ends: milliseconds since the epoch. */
export interface Bearer {
  readonly accountId: AccountId;
  readonly untilMs: number;
}

const KEYS_COOLDOWN_MS = 10_000;
const TIMEOUT_MS = 5_000;
const CLOCK_TOLERANCE_S = 10;

/** The keys could not be read: it says nothing about the token. */
const KEYS_AWAY = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC']);

export class BearerTokens {
  readonly #options: BearerOptions;
  #keys: JWTVerifyGetKey | undefined;

  constructor(options: BearerOptions) {
    this.#options = options;
  }

  /** Throws UNAUTHENTICATED for a token that is not valid here now, FORBIDDEN for a stranger, SIGN_IN_UNAVAILABLE when nobody can say. */
  async verify(token: string): Promise<Bearer> {
    const { sub, iss, exp } = await this.#check(token);
    if (!isSubject(sub)) throw notValid();
    const accountId = await findIdentity(this.#options.db, { issuer: iss as string, subject: sub });
    if (accountId === null)
      throw new RuntimeFault('FORBIDDEN', 'Nobody is known by this token. Sign in once in a browser, then use it again.');
    return { accountId, untilMs: ((exp as number) + CLOCK_TOLERANCE_S) * 1_000 };
  }

  async #check(token: string): Promise<JWTPayload> {
    const { issuer, audience, algorithms } = this.#options;
    try {
      const { payload } = await jwtVerify(token, await this.#keySource(), {
        ...{ issuer: spellings(issuer), audience, algorithms: [...algorithms], clockTolerance: CLOCK_TOLERANCE_S },
        requiredClaims: ['exp', 'sub'],
      });
      return payload;
    } catch (error) {
      if (error instanceof RuntimeFault) throw error;
      if (!(error instanceof errors.JOSEError) || KEYS_AWAY.has(error.code)) throw issuerAway(error);
      throw notValid(error);
    }
  }

  async #keySource(): Promise<JWTVerifyGetKey> {
    if (this.#keys) return this.#keys;
    const { jwksUrl, metadata, keysCooldownMs = KEYS_COOLDOWN_MS, timeoutMs = TIMEOUT_MS } = this.#options;
    const named = jwksUrl?.href ?? (await metadata.configuration()).serverMetadata().jwks_uri;
    if (!named) throw issuerAway();
    this.#keys = createRemoteJWKSet(new URL(named), { cooldownDuration: keysCooldownMs, timeoutDuration: timeoutMs });
    return this.#keys;
  }
}

function notValid(cause?: unknown): RuntimeFault {
  return new RuntimeFault('UNAUTHENTICATED', 'The token is not valid here, or its time is over. Get a new one.', { cause });
}

/** An issuer without a path is written with and without its slash. */
function spellings(issuer: URL): string[] {
  return issuer.pathname === '/' ? [issuer.href, issuer.origin] : [issuer.href];
}
