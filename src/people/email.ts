/**
 * Owns: when two spellings are one email. Only the letters A to Z are folded: other foldings (a Kelvin sign, a dotless i) would make the
 * addresses of two people one.
 */
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u;
const EMAIL_MAX_CHARS = 254;

/** null: that is no email. */
export function normaliseEmail(text: string): string | null {
  const email = text.trim().replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return email.length <= EMAIL_MAX_CHARS && EMAIL.test(email) ? email : null;
}
