/**
 * Owns: what a load may name behind `@`: a branch, a tag, `request/<number>`, or a commit. Pure. A name that passes here is never an option
 * of git, and is only ever used behind `refs/…/`.
 */

const REF_MAX_CHARS = 200;
/** What git itself refuses in a ref name (git-check-ref-format), and what begins like an option. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const FORBIDDEN = /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|^-|^\/|\/$|\.$|(^|\/)\.|\.lock(\/|$)|^@$/;

/** True for a name that may follow `refs/heads/`. */
export function isRefName(name: string): boolean {
  return name.length > 0 && name.length <= REF_MAX_CHARS && name.isWellFormed() && !FORBIDDEN.test(name);
}

/** At least 7 digits of a commit id. */
export function isCommitId(text: string): boolean {
  return /^[0-9a-f]{7,40}$/.test(text);
}

/** The number of `request/12`, or null. */
export function requestNumber(ref: string): number | null {
  const digits = /^request\/([1-9]\d{0,8})$/.exec(ref)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** `heph` or `heph@feature/x` -> its parts; null for anything else. `ref` null: the default branch. */
export function parseLoadName(name: string): { readonly repository: string; readonly ref: string | null } | null {
  const at = name.indexOf('@');
  const [repository, ref] = at < 0 ? [name, null] : [name.slice(0, at), name.slice(at + 1)];
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(repository)) return null;
  return ref === null || isRefName(ref) ? { repository, ref } : null;
}
