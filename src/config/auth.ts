/**
 * Owns: the variables of the sign-in: `HEPH_AUTH`, `HEPH_PUBLIC_URL`, `HEPH_OIDC_*`, `HEPH_JWT_*`, `HEPH_SESSION_*`.
 * A URL of the sign-in is https; http only on this machine, where nobody listens in between.
 */
import type { Reader } from './reader.ts';

/** Signatures with a public key. Never `none`, and never HS*: whoever knows the public key could sign. */
export const JWT_ALGORITHMS: readonly string[] = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA'.split(' ');

export interface OidcConfig {
  readonly kind: 'oidc';
  /** The one address by which people reach this installation: an origin, without a path. */
  readonly publicUrl: URL;
  readonly issuer: URL;
  readonly clientId: string;
  /** null: a public client, which has only PKCE. */
  readonly clientSecret: string | null;
  readonly scopes: string;
  readonly sessionMaxMs: number;
  readonly sessionIdleMs: number;
  /** null: no Bearer tokens. */
  readonly bearer: BearerConfig | null;
}

export interface BearerConfig {
  readonly issuer: URL;
  readonly audience: string;
  readonly algorithms: readonly string[];
  /** null: the one that the issuer names. */
  readonly jwksUrl: URL | null;
}

export type AuthConfig = { readonly kind: 'local' } | OidcConfig;

/** True for a host that is this machine, as a URL or HEPH_BIND names it. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Every variable is read in both modes, so that none of them counts as misspelt. */
export function readAuth(read: Reader): AuthConfig {
  const kind = read.choice('HEPH_AUTH', 'local', ['local', 'oidc']);
  const publicUrl = secureUrl(read, 'HEPH_PUBLIC_URL');
  const issuer = secureUrl(read, 'HEPH_OIDC_ISSUER');
  const clientId = read.raw('HEPH_OIDC_CLIENT_ID');
  const rest = {
    clientSecret: read.raw('HEPH_OIDC_CLIENT_SECRET'),
    scopes: readScopes(read),
    sessionMaxMs: read.durationMs('HEPH_SESSION_MAX', '14d', ['1m', '365d']),
    sessionIdleMs: read.durationMs('HEPH_SESSION_IDLE', '24h', ['1m', '365d']),
  };
  const bearer = readBearer(read, issuer);
  if (kind !== 'oidc') return { kind: 'local' };
  for (const [name, value] of Object.entries({ HEPH_PUBLIC_URL: publicUrl, HEPH_OIDC_ISSUER: issuer, HEPH_OIDC_CLIENT_ID: clientId })) {
    // A bad value has had its complaint.
    if (value === null && read.raw(name) === null) read.problems.push(`${name} is not set, and HEPH_AUTH is oidc. Set it.`);
  }
  if (publicUrl && publicUrl.href !== `${publicUrl.origin}/`) {
    read.bad('HEPH_PUBLIC_URL', publicUrl.origin + publicUrl.pathname, 'an origin without a path, for example https://heph.example.com');
  }
  if (!publicUrl || !issuer || clientId === null) return { kind: 'local' }; // with a complaint: nobody sees it
  return { kind, publicUrl, issuer, clientId, ...rest, bearer };
}

function readBearer(read: Reader, oidcIssuer: URL | null): BearerConfig | null {
  const issuer = secureUrl(read, 'HEPH_JWT_ISSUER') ?? oidcIssuer;
  const audience = read.raw('HEPH_JWT_AUDIENCE');
  const algorithms = read.text('HEPH_JWT_ALGORITHMS', 'RS256,ES256,EdDSA').split(/[\s,]+/);
  const jwksUrl = secureUrl(read, 'HEPH_JWT_JWKS_URL');
  const refused = algorithms.find((one) => !JWT_ALGORITHMS.includes(one));
  if (refused !== undefined) read.bad('HEPH_JWT_ALGORITHMS', refused, `some of: ${JWT_ALGORITHMS.join(', ')}`);
  if (audience === null) {
    const set = ['HEPH_JWT_ISSUER', 'HEPH_JWT_JWKS_URL'].find((name) => read.raw(name) !== null);
    if (set)
      read.problems.push(`${set} is set and HEPH_JWT_AUDIENCE is not. Set it to the audience that names this installation in a token.`);
    return null;
  }
  return issuer && { issuer, audience, algorithms, jwksUrl };
}

/** Separated by spaces, with `openid`. */
function readScopes(read: Reader): string {
  const scopes = read.text('HEPH_OIDC_SCOPES', 'openid profile email').split(/\s+/);
  if (!scopes.includes('openid')) read.bad('HEPH_OIDC_SCOPES', scopes.join(' '), 'scopes with openid among them, separated by spaces');
  return scopes.join(' ');
}

/** An https URL, or an http one of this machine; without a user, a query or a fragment. */
export function secureUrl(read: Reader, name: string): URL | null {
  const url = read.url(name, ['https:', 'http:']);
  if (!url?.protocol.startsWith('http')) return null; // with a complaint, when it is set
  const secure = url.protocol === 'https:' || isLoopbackHost(url.hostname);
  if (secure && !url.username && !url.password && !url.search && !url.hash) return url;
  // A user, a password or a query may be a secret: they are not repeated.
  read.bad(name, url.origin, 'an https:// URL (http:// only for this machine) without a user, a query or a fragment');
  return null;
}
