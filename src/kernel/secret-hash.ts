/**
 * Owns: the form in which a secret of 256 random bits is stored: its SHA-256. Not for passwords, which are no random bits.
 */
import { createHash } from 'node:crypto';

/** In hexadecimal. */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
