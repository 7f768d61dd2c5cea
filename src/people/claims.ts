/**
 * Owns: what we take from the claims of an issuer, and which of its failures are a bad moment.
 */
import { ClientError, type IDToken } from 'openid-client';
import type { SubjectFacts } from '../../db/people/identities.ts';
import { cutText, isBlank, wellFormed } from '../kernel/text.ts';
import { normaliseEmail } from './email.ts';

export type PersonClaims = Pick<IDToken, 'iss' | 'sub'> & { readonly [claim: string]: unknown };

/** OpenID Connect: at most 255 characters. */
const SUBJECT_MAX_CHARS = 255;
const NAME_MAX_CHARS = 200;
const NAMELESS = 'Member';

/** True for what can be a subject, and can be stored. */
export function isSubject(sub: unknown): sub is string {
  return typeof sub === 'string' && sub !== '' && sub.length <= SUBJECT_MAX_CHARS && sub === wellFormed(sub);
}

/** An email counts only when the issuer says that it has verified it, with the boolean and not with a word. */
export function toFacts(claims: PersonClaims): Omit<SubjectFacts, 'timeZone'> {
  const email = typeof claims['email'] === 'string' && claims['email_verified'] === true ? normaliseEmail(claims['email']) : null;
  const names = [claims['name'], claims['preferred_username'], claims['email']];
  const name = names.find((one): one is string => typeof one === 'string' && !isBlank(one)) ?? NAMELESS;
  return { issuer: claims.iss, subject: claims.sub, email, displayName: cutText(wellFormed(name.trim()), NAME_MAX_CHARS) };
}

const TIMED_OUT = 'OAUTH_TIMEOUT';
const UNEXPECTED_STATUS = 'OAUTH_RESPONSE_IS_NOT_CONFORM';

/** True when the issuer did not answer, or answered that it cannot; false when it answered something wrong. */
export function isIssuerAway(error: unknown): boolean {
  if (error instanceof TypeError) return true; // how fetch tells that nobody answered
  if (!(error instanceof ClientError)) return false;
  if (error.code === UNEXPECTED_STATUS) return error.cause instanceof Response && error.cause.status >= 500;
  return error.code === TIMED_OUT || (error.code === undefined && error.cause instanceof Error);
}
