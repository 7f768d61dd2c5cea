/**
 * Owns: the name of a batch: made of its key, so that a repeat, on any server, finds the same rows.
 */
import { createHash } from 'node:crypto';

/** A uuid (version 8: its bits are ours) of the SHA-256 of the key. */
export function batchIdOf(key: string): string {
  const bytes = createHash('sha256').update(`heph batch ${key}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
