/**
 * Owns: what must stand where: a README in each folder of DESIGN section 1, migrations numbered without a gap.
 * Does not own: what stands inside code (code.ts, text.ts).
 */
import type { Finding, Tree } from '../tree.ts';

const README_LINES_MAX = 40;
/** Folders that explain themselves; of those with children, each direct child does too. */
const EXPLAINED_FOLDERS = ['sandbox-runner', 'bench', 'deploy', 'tools'];
const EXPLAINED_WITH_CHILDREN = ['src', 'actors', 'db', 'spec'];
/** Its files explain themselves: they are the history of the schema. */
const UNEXPLAINED_FOLDERS = new Set(['db/migrations']);
const MIGRATIONS = 'db/migrations/';
const MIGRATION_NAME = /^(\d{4})_[a-z0-9]+([-_][a-z0-9]+)*\.sql$/;

/** A folder without its README, a README that grew, a migration out of order. */
export function checkLayout(tree: Tree): Finding[] {
  return [...checkReadmes(tree), ...checkMigrations(tree)];
}

function checkReadmes(tree: Tree): Finding[] {
  const findings: Finding[] = [];
  for (const folder of explainedFolders(tree)) {
    const path = `${folder}/README.md`;
    if (!tree.paths.includes(path)) {
      findings.push({ path, problem: 'is missing. Say what lives here, what does not, and who may import it.' });
      continue;
    }
    const lines = tree.read(path).trimEnd().split('\n').length;
    if (lines > README_LINES_MAX) {
      findings.push({ path, problem: `has ${lines} lines. A folder's README has at most ${README_LINES_MAX}.` });
    }
  }
  return findings;
}

function explainedFolders(tree: Tree): string[] {
  const folders = new Set<string>();
  for (const [top, child, below] of tree.paths.map((path) => path.split('/'))) {
    if (top === undefined || child === undefined) continue;
    if (EXPLAINED_FOLDERS.includes(top)) folders.add(top);
    if (!EXPLAINED_WITH_CHILDREN.includes(top)) continue;
    folders.add(top);
    if (below !== undefined && !UNEXPLAINED_FOLDERS.has(`${top}/${child}`)) folders.add(`${top}/${child}`);
  }
  return [...folders].sort();
}

function checkMigrations(tree: Tree): Finding[] {
  const findings: Finding[] = [];
  let expected = 1;
  for (const path of tree.paths.filter((candidate) => candidate.startsWith(MIGRATIONS))) {
    const number = MIGRATION_NAME.exec(path.slice(MIGRATIONS.length))?.[1];
    if (number === undefined) {
      findings.push({ path, problem: 'is no migration name. Write four digits, an underscore and a name: 0001_ledger.sql.' });
      continue;
    }
    if (Number(number) !== expected) {
      findings.push({
        path,
        problem: `should be number ${String(expected).padStart(4, '0')}: migrations are numbered in order, without a gap.`,
      });
    }
    expected = Number(number) + 1;
  }
  return findings;
}
