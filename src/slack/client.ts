/**
 * Owns: the settings of Slack's client: no retries of its own (a repeated post is a second message), every timeout bounded, nothing logged
 * (its log lines hold words and tokens).
 */
import { type Logger, LogLevel, WebClient } from '@slack/web-api';

export interface ClientOptions {
  readonly apiUrl: string;
  /** Longest time of one call, milliseconds. */
  readonly timeoutMs: number;
}

export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  setLevel: () => {},
  getLevel: () => LogLevel.ERROR,
  setName: () => {},
};

const TOO_MANY = 429;
const RETRY_AFTER_S = 30;

/** A 429 without a time is a 429 all the same: the client would throw something that looks like any other failure. */
async function fetchLimited(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request);
  if (response.status !== TOO_MANY || /^\d{1,6}$/.test(response.headers.get('retry-after') ?? '')) return response;
  await response.body?.cancel();
  return new Response(null, { status: TOO_MANY, headers: { 'retry-after': String(RETRY_AFTER_S) } });
}

export function slackClient(token: string, { apiUrl, timeoutMs }: ClientOptions): WebClient {
  return new WebClient(token, {
    slackApiUrl: apiUrl,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    timeout: timeoutMs,
    allowAbsoluteUrls: false,
    logger: silentLogger,
    fetch: fetchLimited,
  });
}
