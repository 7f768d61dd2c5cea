/**
 * Owns: house rules about the text of a file: its length, unfinished work, paths of a machine, hosts in the lock file.
 * Does not own: anything that needs a parser (code.ts).
 */
import type { Finding, Tree } from '../tree.ts';

const FILE_LINES_WARN = 250;
const FILE_LINES_MAX = 400;
const MEASURED = /\.(ts|tsx|css|sql)$/;
const GENERATED = /(^|\/)(schema\.sql|openapi\.json|package-lock\.json)$|\.d\.ts$/;
const TEXT = /\.(ts|tsx|js|cjs|mjs|css|sql|html|md|json|ya?ml|toml|sh|tpl)$|(^|\/)(Dockerfile[^/]*|heph|run|\.[\w.-]+)$/;
/** Taken apart, so that this file does not find itself. */
const UNFINISHED = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X'.repeat(3)].join('|')})\\b`);
/** A folder of somebody's machine at the start of a path; below another folder, or longer than the word, the name is harmless. */
const MACHINE_PATH = /(?<![\w.\-})\]*/\\])\/(?:work(?![\w-])|(?:home|root)\/)/;
const LOCKED_HOST = /"resolved":\s*"https?:/;

/** Failures and warnings about the text of every file of the tree. */
export function checkText(tree: Tree): { failures: Finding[]; warnings: Finding[] } {
  const failures: Finding[] = [];
  const warnings: Finding[] = [];
  for (const path of tree.paths) {
    if (path === 'package-lock.json') failures.push(...checkLock(tree, path));
    if (GENERATED.test(path) || !TEXT.test(path)) continue;
    const lines = tree.read(path).replace(/\n$/, '').split('\n');
    if (MEASURED.test(path)) {
      if (lines.length > FILE_LINES_MAX) {
        failures.push({ path, problem: `has ${lines.length} lines. The limit is ${FILE_LINES_MAX}: split it by what changes together.` });
      } else if (lines.length > FILE_LINES_WARN) {
        warnings.push({
          path,
          problem: `has ${lines.length} lines. Over ${FILE_LINES_WARN} it should be split soon (limit ${FILE_LINES_MAX}).`,
        });
      }
    }
    lines.forEach((text, index) => {
      failures.push(...checkLine(text).map((problem) => ({ path, line: index + 1, problem })));
    });
  }
  return { failures, warnings };
}

function checkLine(text: string): string[] {
  const problems: string[] = [];
  const unfinished = UNFINISHED.exec(text)?.[1];
  if (unfinished !== undefined) problems.push(`says ${unfinished}. Do it now, or write an issue.`);
  const machinePath = MACHINE_PATH.exec(text)?.[0];
  if (machinePath !== undefined) problems.push(`names ${machinePath}, a folder of one machine. Use a relative path or a setting.`);
  return problems;
}

function checkLock(tree: Tree, path: string): Finding[] {
  const line = tree
    .read(path)
    .split('\n')
    .findIndex((text) => LOCKED_HOST.test(text));
  if (line < 0) return [];
  return [{ path, line: line + 1, problem: "names a registry host. Write it again with npm's setting omit-lockfile-registry-resolved." }];
}
