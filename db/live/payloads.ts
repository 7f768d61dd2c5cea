/**
 * Owns: the size of a NOTIFY payload. PostgreSQL refuses 8,000 bytes and more, counted in UTF-8 and not in characters.
 */

/** The largest payload that PostgreSQL takes. */
export const PAYLOAD_MAX_BYTES = 7_999;

/** One word for other servers. */
export interface Message {
  readonly channel: string;
  readonly payload: string;
}

export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

export function fits(payload: string): boolean {
  return utf8Bytes(payload) <= PAYLOAD_MAX_BYTES;
}
