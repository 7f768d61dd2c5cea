/**
 * Owns: which paths of the context folder may be asked for. A path is in normal form, or it is none: nothing is resolved or repaired here.
 */
import { LIMITS } from '../contract/limits.ts';

/** Relative, forward slashes, no empty, `.` or `..` segment, no control character, no backslash, well-formed. */
export function isFolderPath(path: string): boolean {
  if (path.length === 0 || path.length > LIMITS.documentPathMaxChars || !path.isWellFormed()) return false;
  if (/[\p{Cc}\\]/u.test(path)) return false;
  return path.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..');
}
