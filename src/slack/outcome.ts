/**
 * Owns: what an error of Slack's client says about a post. There are three kinds: nothing was posted (and it may be tried again, or not), the app
 * may not post at all, and nobody knows. Whatever is not listed as known is unknown. rule: R14
 */
import { WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from '@slack/web-api';

export type Known =
  | { readonly kind: 'limited'; readonly afterMs: number }
  | { readonly kind: 'again' | 'revoked' | 'permanent' | 'unknown'; readonly reason: string };

/** Answers after which Slack has posted nothing, and may later. (`internal_error` and `fatal_error` may have worked in part, so they are unknown.) */
const AGAIN = new Set(['service_unavailable', 'request_timeout', 'team_added_to_org', 'org_login_required']);
const LIMITED = new Set(['ratelimited', 'rate_limited', 'message_limit_exceeded']);
const UNKNOWN = new Set(['internal_error', 'fatal_error']);
/** The app's own trouble: an operator helps, or a new token. */
const REVOKED = new Set([
  ...['token_revoked', 'account_inactive', 'invalid_auth', 'not_authed', 'token_expired', 'missing_scope', 'no_permission'],
  ...['access_denied', 'ekm_access_denied', 'team_access_not_granted', 'not_allowed_token_type'],
]);
const LIMITED_AFTER_MS = 30_000;

/** Nothing can have left: there was no connection to send it on. */
const NOT_CONNECTED = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL', 'UND_ERR_CONNECT_TIMEOUT'],
]);

export function knownOf(error: unknown): Known {
  if (error instanceof WebAPIRateLimitedError) return { kind: 'limited', afterMs: error.retryAfter * 1_000 };
  if (error instanceof WebAPIPlatformError) return ofCode(error.data.error);
  if (error instanceof WebAPIRequestError && notConnected(error.original)) return { kind: 'again', reason: 'not_connected' };
  const reason = error instanceof Error ? ((error as { code?: string }).code ?? error.name) : 'unknown';
  return { kind: 'unknown', reason: String(reason).slice(0, 60) };
}

function ofCode(code: string): Known {
  const reason = /^[a-z_]{1,60}$/.test(code) ? code : 'unreadable_code';
  if (LIMITED.has(reason)) return { kind: 'limited', afterMs: LIMITED_AFTER_MS };
  if (AGAIN.has(reason)) return { kind: 'again', reason };
  if (REVOKED.has(reason)) return { kind: 'revoked', reason };
  if (UNKNOWN.has(reason) || reason === 'unreadable_code') return { kind: 'unknown', reason };
  return { kind: 'permanent', reason };
}

/** Every address that was tried refused. */
function notConnected(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > 4) return false;
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every((inner) => notConnected(inner, depth + 1));
  const { code } = error as { code?: unknown };
  return (typeof code === 'string' && NOT_CONNECTED.has(code)) || notConnected(error.cause, depth + 1);
}
