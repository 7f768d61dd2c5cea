/**
 * Owns: Slack's side of deliveries for specs: the bodies of its Events API, signed here and not by the code under test.
 */
import { createHmac } from 'node:crypto';
import { type Answer, answerOf } from './http-rig.ts';
import { TEAM } from './slack-scene.ts';

export const SIGNING_SECRET = 'signing-secret-of-the-spec';

let count = 0;

/** An `event_callback`; each has its own id unless told otherwise. */
export function callback(event: Record<string, unknown>, extra: Record<string, unknown> = {}): Record<string, unknown> {
  const ids = { team_id: TEAM, api_app_id: 'A0APP', event_id: `Ev${String(++count).padStart(8, '0')}` };
  return { token: 'legacy', type: 'event_callback', event_time: 1_700_000_000, ...ids, event, ...extra };
}

/** A direct message as Slack sends it. */
export function message(text: string, extra: Record<string, unknown> = {}): Record<string, unknown> & { readonly ts: string } {
  const ts = `1700000100.${String(++count).padStart(6, '0')}`;
  return {
    type: 'message',
    channel: 'D0ADA',
    channel_type: 'im',
    user: 'U0ADA',
    text,
    ts,
    event_ts: ts,
    client_msg_id: `m-${ts}`,
    ...extra,
  } as never;
}

export function changed(original: Record<string, unknown>, now: Record<string, unknown>): Record<string, unknown> {
  const { channel, channel_type, ts } = original;
  return {
    type: 'message',
    subtype: 'message_changed',
    hidden: true,
    channel,
    channel_type,
    ts: `${ts}9`,
    message: { ...original, ...now },
    previous_message: original,
  };
}

export function deleted(original: Record<string, unknown>): Record<string, unknown> {
  const { channel, channel_type, ts } = original;
  return {
    type: 'message',
    subtype: 'message_deleted',
    hidden: true,
    channel,
    channel_type,
    ts: `${ts}8`,
    deleted_ts: ts,
    previous_message: original,
  };
}

export interface DeliverOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Seconds from now. */
  readonly skewS?: number;
  readonly secret?: string;
  /** Changes the body after it was signed. */
  readonly tamper?: (body: string) => string;
}

export function signed(body: string, { skewS = 0, secret = SIGNING_SECRET }: DeliverOptions = {}): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1_000) + skewS);
  const digest = createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex');
  return { 'content-type': 'application/json', 'x-slack-request-timestamp': timestamp, 'x-slack-signature': `v0=${digest}` };
}

export async function deliver(port: number, body: unknown, options: DeliverOptions = {}): Promise<Answer> {
  const text = JSON.stringify(body);
  const headers = { ...signed(text, options), ...options.headers };
  return answerOf(await fetch(`http://127.0.0.1:${port}/slack/events`, { method: 'POST', headers, body: options.tamper?.(text) ?? text }));
}
