/**
 * Owns: whether a delivery is Slack's own: HMAC-SHA256 over `v0:time:body`, compared in constant time, and a time within five minutes, on either
 * side: a delivery that was caught and kept must not be usable later, and none may be made for later.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

export const WINDOW_S = 300;

export interface SignedDelivery {
  /** As it came, byte for byte. */
  readonly body: Buffer;
  /** X-Slack-Request-Timestamp. */
  readonly timestamp: string;
  /** X-Slack-Signature. */
  readonly signature: string;
}

export function sign(secret: string, timestamp: string, body: Buffer): string {
  return `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')}`;
}

export function isSigned({ body, timestamp, signature }: SignedDelivery, secret: string, nowMs: number): boolean {
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(nowMs / 1_000 - Number(timestamp)) > WINDOW_S) return false;
  const [given, own] = [Buffer.from(signature), Buffer.from(sign(secret, timestamp, body))];
  return given.length === own.length && timingSafeEqual(given, own);
}
