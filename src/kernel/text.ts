/**
 * Owns: the one normalisation of text (DESIGN section 5) and cutting by code point.
 * Rule: what a person sees, what the ledger stores, what an export holds and what Slack shows are the same string.
 */

/** U+0000 cannot be stored in PostgreSQL text; a lone surrogate cannot be encoded as UTF-8. Both become U+FFFD. */
export function wellFormed(text: string): string {
  const safe = text.isWellFormed() ? text : text.toWellFormed();
  return safe.includes('\u0000') ? safe.replaceAll('\u0000', '\uFFFD') : safe;
}

/**
 * The same for all strings and keys of what `JSON.stringify` wrote, which has escapes for U+0000 and for lone surrogates only as such. A model
 * that once wrote one would otherwise be sent it with each later turn, and there are providers that refuse such a request.
 */
export function wellFormedJson(json: string): string {
  if (!json.includes('\\u')) return json;
  return json.replaceAll(/\\\\|\\u0000|\\ud[89a-f][0-9a-f]{2}/g, (sign) => (sign === '\\\\' ? sign : '\uFFFD'));
}

/** Number of Unicode code points. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** At most `maxCodePoints` code points of `text`; a character is never cut in half. */
export function cutText(text: string, maxCodePoints: number): string {
  if (text.length <= maxCodePoints) return text;
  let end = 0;
  for (let count = 0; count < maxCodePoints && end < text.length; count++) {
    end += (text.codePointAt(end) as number) > 0xffff ? 2 : 1;
  }
  return text.slice(0, end);
}

/** True when the text has nothing but white space, format characters and control characters. */
export function isBlank(text: string): boolean {
  return !/[^\s\p{Cf}\p{Cc}\p{Zs}\u2800\u3164\u115F\u1160\uFFA0]/u.test(text);
}
