/**
 * Owns: a whole test run: one mocha process for each folder of spec/, the count over all of them, the last line and the exit code.
 * Does not own: the specs' surroundings (spec/support/global.ts) or mocha's settings (.mocharc.json).
 *
 * `npm test -- [path, folder or pattern …] [flags for mocha …]`. The last line of a run is `N passed, N failed`, with
 * `, N skipped` when there are any; each skip is listed above it with its reason.
 */
import { globSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { type GroupResult, runGroup } from './test-group.ts';

const DEFAULT_SPECS = 'spec/**/*.spec.ts';
const RUN_LIMIT_MS = 2_400_000;
/** What is quick and says most comes first; folders that are not named follow in alphabetical order. */
const FOLDER_ORDER = ['rules', 'flows', 'failures', 'web'];

/** Spec files by the folder of spec/ that they stand in, in the order in which the folders run. */
export function groupSpecs(files: readonly string[]): Map<string, string[]> {
  const rank = (folder: string): number => FOLDER_ORDER.indexOf(folder) + 1 || FOLDER_ORDER.length + 1;
  const groups = Map.groupBy([...files].sort(), (file) => file.split('/')[1] ?? '');
  return new Map([...groups].sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b)));
}

/** The line that ends a run. */
export function summaryLine(totals: { passed: number; failed: number; skipped: number }): string {
  return `${totals.passed} passed, ${totals.failed} failed${totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''}`;
}

function findSpecs(patterns: readonly string[]): string[] {
  const files = new Set<string>();
  for (const pattern of patterns) {
    const isFolder = statSync(pattern, { throwIfNoEntry: false })?.isDirectory() ?? false;
    const found = globSync(isFolder ? join(pattern, '**/*.spec.ts') : pattern);
    if (found.length === 0) throw new Error(`no spec matches ${pattern}`);
    for (const file of found) files.add(relative('', file).split(sep).join('/'));
  }
  return [...files];
}

/** Arguments up to the first flag choose specs; the rest is mocha's. */
function splitArguments(args: readonly string[]): { patterns: readonly string[]; flags: readonly string[] } {
  const firstFlag = args.findIndex((arg) => arg.startsWith('-'));
  const patterns = firstFlag < 0 ? args : args.slice(0, firstFlag);
  const flags = firstFlag < 0 ? [] : args.slice(firstFlag);
  return { patterns: patterns.length > 0 ? patterns : [DEFAULT_SPECS], flags };
}

async function main(args: readonly string[]): Promise<void> {
  const { patterns, flags } = splitArguments(args);
  const deadline = performance.now() + RUN_LIMIT_MS;
  const results: GroupResult[] = [];
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());
  try {
    for (const [folder, files] of groupSpecs(findSpecs(patterns))) {
      if (stop.signal.aborted) break;
      console.log(`\nspec/${folder}`);
      results.push(await runGroup(files, { flags, limitMs: Math.max(0, deadline - performance.now()), stop: stop.signal }));
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
  const sum = (count: (result: GroupResult) => number): number => results.reduce((total, result) => total + count(result), 0);
  const totals = { passed: sum((r) => r.passed), failed: sum((r) => r.failed), skipped: sum((r) => r.skips.length) };
  for (const line of results.flatMap((result) => [...result.failures, ...result.troubles])) console.log(`FAILED: ${line}`);
  for (const line of results.flatMap((result) => result.skips)) console.log(line);
  if (totals.failed > 0 || totals.passed === 0) process.exitCode = 1;
  console.log(summaryLine(totals));
}

if (import.meta.main) await main(process.argv.slice(2));
