/**
 * Owns: the variables of the operations listener: who is an operator there (`HEPH_OPS_*`). Of a token only its SHA-256 is kept.
 */
import { createHash } from 'node:crypto';
import { OPS_ROLES, type OpsRole } from '../contract/operators.ts';
import { secureUrl } from './auth.ts';
import type { Reader } from './reader.ts';

export interface OpsConfig {
  /** At most one for each role. */
  readonly tokens: readonly { readonly role: OpsRole; readonly hash: Buffer }[];
  /** SHA-256; null: `/metrics` is open to whoever reaches the port. */
  readonly metricsToken: Buffer | null;
  /** The address by which operators reach this listener with a browser, an origin; null: nobody signs in there. */
  readonly publicUrl: URL | null;
  /** What the command line sends. */
  readonly commandToken: string | null;
}

/** Shorter ones can be guessed. */
export const OPS_TOKEN_MIN_CHARS = 32;
const OPS_TOKEN_MAX_CHARS = 500;

export function readOps(read: Reader): OpsConfig {
  const named = OPS_ROLES.map((role) => ({ role, name: `HEPH_OPS_${role.toUpperCase()}_TOKEN` }));
  const tokens = named.flatMap(({ role, name }) => {
    const hash = readToken(read, name);
    return hash === null ? [] : [{ role, hash, name }];
  });
  const metricsToken = readToken(read, 'HEPH_OPS_METRICS_TOKEN');
  const all = metricsToken === null ? tokens : [...tokens, { hash: metricsToken, name: 'HEPH_OPS_METRICS_TOKEN' }];
  for (const [at, { hash, name }] of all.entries()) {
    const same = all.slice(0, at).find((one) => one.hash.equals(hash));
    if (same) read.problems.push(`${name} holds the same token as ${same.name}. Give each its own.`);
  }
  const publicUrl = secureUrl(read, 'HEPH_OPS_PUBLIC_URL');
  if (publicUrl && publicUrl.href !== `${publicUrl.origin}/`)
    read.bad(
      'HEPH_OPS_PUBLIC_URL',
      publicUrl.origin + publicUrl.pathname,
      'an origin without a path, such as https://ops.heph.example.com',
    );
  return { tokens: tokens.map(({ role, hash }) => ({ role, hash })), metricsToken, publicUrl, commandToken: read.raw('HEPH_OPS_TOKEN') };
}

/** What is wrong with it is told without it. */
function readToken(read: Reader, name: string): Buffer | null {
  const value = read.raw(name);
  if (value === null) return null;
  if (value.length < OPS_TOKEN_MIN_CHARS || value.length > OPS_TOKEN_MAX_CHARS || !/^[\x21-\x7e]+$/.test(value)) {
    const length = `It has ${value.length} characters`;
    read.problems.push(
      `${name} must be ${OPS_TOKEN_MIN_CHARS} to ${OPS_TOKEN_MAX_CHARS} ASCII characters without spaces, for example what \`openssl rand -hex 32\` prints. ${length}.`,
    );
  }
  return createHash('sha256').update(value).digest();
}
