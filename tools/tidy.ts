/**
 * Owns: the house rules that no library checks, and their limits (tools/README.md lists them).
 * Does not own: format and lint (Biome), imports (dependency-cruiser), rule tags (rules.ts).
 */
import { checkCode } from './tidy/code.ts';
import { checkLayout } from './tidy/layout.ts';
import { checkText } from './tidy/text.ts';
import { type Finding, openTree, PROJECT_ROOT, report, type Tree } from './tree.ts';

/** What fails the gate, and what only asks for attention. */
export interface TidyVerdict {
  readonly failures: readonly Finding[];
  readonly warnings: readonly Finding[];
}

/** Runs every house rule over a tree. */
export function checkTidy(tree: Tree): TidyVerdict {
  const text = checkText(tree);
  return { failures: [...checkLayout(tree), ...text.failures, ...checkCode(tree)], warnings: text.warnings };
}

if (import.meta.main) {
  const { failures, warnings } = checkTidy(openTree(PROJECT_ROOT));
  report('every file keeps the house rules', failures, warnings);
}
