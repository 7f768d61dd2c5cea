/**
 * Owns: running dependency-cruiser over the product and its specs, and noticing when it looked at too little.
 * Does not own: the rules themselves (.dependency-cruiser.cjs).
 */
import { join } from 'node:path';
import { cruise, getAvailableTranspilers, type ICruiseOptions, type ICruiseResult, type IViolation } from 'dependency-cruiser';
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options';
import { type Finding, openTree, PROJECT_ROOT, report, type Tree } from './tree.ts';

const RULES = join(PROJECT_ROOT, '.dependency-cruiser.cjs');
const CRUISED = /^(src|actors|db|sandbox-runner|bench|spec|tools)\/.*\.tsx?$/;

/**
 * Every forbidden import of the tree, and every sign that the cruise itself saw too little: without a working swc,
 * dependency-cruiser finds no modules, or no imports of types, and passes. `overrides` are for trying such a cruise.
 */
export async function checkBoundaries(tree: Tree, overrides: ICruiseOptions = {}): Promise<Finding[]> {
  const listed = tree.paths.filter((path) => CRUISED.test(path));
  if (listed.length === 0) return [];
  const folders = [...new Set(listed.map((path) => path.slice(0, path.indexOf('/'))))];
  const options = { ...(await extractDepcruiseOptions(RULES)), baseDir: tree.root, validate: true, ...overrides };
  const { output } = await cruise(folders, options);
  if (typeof output === 'string') throw new Error('dependency-cruiser answered with text instead of its result');
  const violations = output.summary.violations.map((violation) => toFinding(violation, options));
  return [...wrongParser(options), ...unseen(listed, output), ...violations];
}

function wrongParser(options: ICruiseOptions): Finding[] {
  const hasSwc = getAvailableTranspilers().some(({ name, available }) => name === 'swc' && available);
  if (options.parser === 'swc' && hasSwc) return [];
  return [{ path: '.dependency-cruiser.cjs', problem: 'must use the parser swc, and @swc/core must be installed: others miss imports.' }];
}

function unseen(listed: readonly string[], result: ICruiseResult): Finding[] {
  const seen = new Set(result.modules.map((module) => module.source));
  return listed
    .filter((path) => !seen.has(path))
    .map((path) => ({ path, problem: 'was not looked at by dependency-cruiser, although git lists it.' }));
}

function toFinding(violation: IViolation, options: ICruiseOptions): Finding {
  const { name } = violation.rule;
  const steps = violation.cycle?.map((step) => step.name) ?? [violation.unresolvedTo ?? violation.to];
  const why = options.ruleSet?.forbidden?.find((rule) => rule.name === name)?.comment ?? '';
  return { path: violation.from, problem: `imports ${steps.join(' -> ')} (${name}). ${why}` };
}

if (import.meta.main) {
  const tree = openTree(PROJECT_ROOT);
  report('every import is allowed', await checkBoundaries(tree));
}
