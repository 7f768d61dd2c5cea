/**
 * Owns: the variables of Slack: `HEPH_SLACK_*`.
 */
import type { Reader } from './reader.ts';

export interface SlackConfig {
  /** With a slash at its end. */
  readonly apiUrl: string;
  /** Between two readings of a team's history, milliseconds. Slack lets apps that are sold outside of its marketplace read once a minute. */
  readonly readEveryMs: number;
  /** How long a copy that a tool made of what stands elsewhere is kept, milliseconds (DESIGN section 2). */
  readonly retentionMs: number;
  /** null: nothing is taken from Slack. */
  readonly signingSecret: string | null;
  /** null: no installation by Slack's consent page. */
  readonly app: { readonly clientId: string; readonly clientSecret: string } | null;
}

export function readSlack(read: Reader): SlackConfig {
  const apiUrl = read.url('HEPH_SLACK_API_URL', ['https:', 'http:']) ?? new URL('https://slack.com/api/');
  if (!apiUrl.pathname.endsWith('/') || apiUrl.search || apiUrl.hash) {
    read.bad('HEPH_SLACK_API_URL', apiUrl.origin + apiUrl.pathname, 'a URL that ends with a slash, such as https://slack-gov.com/api/');
  }
  const signingSecret = read.raw('HEPH_SLACK_SIGNING_SECRET');
  if (signingSecret !== null && signingSecret.length < 16) {
    read.problems.push(
      'HEPH_SLACK_SIGNING_SECRET is too short to be the signing secret of a Slack app (Basic Information, App Credentials).',
    );
  }
  const [clientId, clientSecret] = [read.raw('HEPH_SLACK_CLIENT_ID'), read.raw('HEPH_SLACK_CLIENT_SECRET')];
  if ((clientId === null) !== (clientSecret === null)) {
    read.problems.push('Only one of HEPH_SLACK_CLIENT_ID and HEPH_SLACK_CLIENT_SECRET is set. Set both, or neither.');
  }
  const app = clientId === null || clientSecret === null ? null : { clientId, clientSecret };
  const readEveryMs = read.durationMs('HEPH_SLACK_READ_EVERY', '60s', ['1s', '1h']);
  // More than the two weeks by which the sweep is early.
  const retentionMs = read.durationMs('HEPH_SLACK_RETENTION', '90d', ['15d', '3650d']);
  return { apiUrl: apiUrl.href, readEveryMs, retentionMs, signingSecret, app };
}
