/**
 * Owns: the check that spec/RULES.md, the database and the specs name the same rules.
 * Does not own: what a rule means, or whether its spec is any good (the spec's reader decides that).
 *
 * A rule is tagged where it is enforced, obeyed and proved by the word "rule", a colon and its id (several ids: with commas).
 * RULES.md holds one table of rules that hold and, under a heading "Not yet", one of rules that an issue still brings.
 */
import { parseRules, type Rule, type RulesPage } from './rules-page.ts';
import { type Finding, openTree, PROJECT_ROOT, report, type Tree } from './tree.ts';

const RULES_PATH = 'spec/RULES.md';
const TAG = /\brule:\s*(R\d+(?:\s*,\s*R\d+)*)\b/g;
const TAGGED_FILE = /^(src|actors|db|sandbox-runner|spec|bench)\/.*\.(ts|tsx|sql)$/;
const SPEC_FILE = /\.spec\.tsx?$/;
/** Words by which an "enforced by" cell says that the database holds the rule. */
const NAMES_DATABASE = /\bdb\/|\b(database|constraint|trigger|index|unique|foreign keys?|primary key|migration)\b/i;

interface Tag {
  readonly id: string;
  readonly path: string;
  readonly line: number;
}

/** All that is wrong between RULES.md and the tags of the tree; empty when they agree. */
export function checkRules(tree: Tree): Finding[] {
  if (!tree.paths.includes(RULES_PATH)) {
    return [{ path: RULES_PATH, problem: 'is missing. Write the table of rules (tools/README.md says how).' }];
  }
  const page = parseRules(tree.read(RULES_PATH));
  const tags = findTags(tree);
  return [
    ...page.problems.map((problem) => ({ path: RULES_PATH, ...problem })),
    ...unknownTags(page, tags),
    ...page.rules.flatMap((rule) => checkRule(rule, tags, tree)),
  ];
}

function findTags(tree: Tree): Tag[] {
  const tags: Tag[] = [];
  for (const path of tree.paths.filter((candidate) => TAGGED_FILE.test(candidate))) {
    tree
      .read(path)
      .split('\n')
      .forEach((text, index) => {
        for (const match of text.matchAll(TAG)) {
          for (const id of (match[1] ?? '').split(',')) tags.push({ id: id.trim(), path, line: index + 1 });
        }
      });
  }
  return tags;
}

function unknownTags(page: RulesPage, tags: readonly Tag[]): Finding[] {
  const known = new Set([...page.rules, ...page.notYet].map((rule) => rule.id));
  return tags
    .filter((tag) => !known.has(tag.id))
    .map((tag) => ({ path: tag.path, line: tag.line, problem: `is tagged with ${tag.id}, which ${RULES_PATH} does not list.` }));
}

function checkRule(rule: Rule, tags: readonly Tag[], tree: Tree): Finding[] {
  const at = (problem: string): Finding => ({ path: RULES_PATH, line: rule.line, problem: `${rule.id} ${problem}` });
  const tagged = new Set(tags.filter((tag) => tag.id === rule.id).map((tag) => tag.path));
  const findings: Finding[] = [];
  for (const [column, paths] of Object.entries(rule.paths)) {
    for (const path of paths.filter((candidate) => !exists(tree, candidate))) {
      findings.push(at(`names ${path} under "${column}", but there is no such file or folder.`));
    }
  }
  if (NAMES_DATABASE.test(rule.enforcedBy) && ![...tagged].some((path) => path.startsWith('db/'))) {
    findings.push(at(`is said to be enforced by the database, but no file under db/ carries "rule: ${rule.id}".`));
  }
  if (![...tagged].some((path) => SPEC_FILE.test(path))) {
    findings.push(at(`has no spec: no *.spec.ts carries "rule: ${rule.id}".`));
  }
  if (rule.paths['proved by'].length === 0) findings.push(at('names no spec under "proved by". Write its path, such as spec/rules/….'));
  for (const path of rule.paths['proved by'].filter((candidate) => SPEC_FILE.test(candidate) && exists(tree, candidate))) {
    if (!tagged.has(path)) findings.push(at(`names ${path} as its proof, but that spec does not carry "rule: ${rule.id}".`));
  }
  return findings;
}

function exists(tree: Tree, path: string): boolean {
  const folder = path.endsWith('/') ? path : `${path}/`;
  return tree.paths.some((candidate) => candidate === path || candidate.startsWith(folder));
}

if (import.meta.main) {
  report('every rule has its tag and its spec', checkRules(openTree(PROJECT_ROOT)));
}
