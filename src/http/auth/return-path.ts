/**
 * Owns: where a browser may be sent after a sign-in: a page of this site, never another site.
 */
const RETURN_MAX_CHARS = 2_000;
/** One slash, and not a second one or a backslash, by which a browser would leave the site. */
const OWN_PATH = /^\/(?![/\\])[^\\\s\p{C}]*$/u;
const SIGN_IN = /^\/auth(\/|$)/;
const HOME = '/';

/** The path, or the start page when it is none. The pages of the sign-in are no place to return to: they would begin again for ever. */
export function returnPath(asked: unknown): string {
  if (typeof asked !== 'string' || asked.length > RETURN_MAX_CHARS || !OWN_PATH.test(asked)) return HOME;
  const url = new URL(asked, 'https://own.invalid');
  const path = url.pathname + url.search;
  // The parser took the dots away: look at the result once more.
  return url.origin === 'https://own.invalid' && OWN_PATH.test(path) && !SIGN_IN.test(path) && path.length <= RETURN_MAX_CHARS
    ? path
    : HOME;
}
