/**
 * Owns: reading spec/RULES.md, that is its two Markdown tables.
 * Does not own: comparing them with the tree (rules.ts).
 */

const PATH_COLUMNS = ['enforced by', 'obeyed by', 'proved by'] as const;
type PathColumn = (typeof PATH_COLUMNS)[number];
const RULE_COLUMNS = ['id', 'rule', 'why', ...PATH_COLUMNS, 'code'];
const NOT_YET_COLUMNS = ['id', 'issue'];
const RULE_ID = /^R\d+$/;
/** A path of ours inside a cell: in back quotes, in a link or bare. */
const OWN_PATH = /(?<![\w./-])(?:src|actors|db|sandbox-runner|spec|bench|tools|deploy|bin)\/[\w./-]*/g;

/** The row of dashes under a table's header. */
const SEPARATOR_ROW = /^[\s|:-]*-[\s|:-]*$/;

/** A rule that holds. `line` is its row in RULES.md, `paths` are the files and folders that its cells name. */
export interface Rule {
  readonly id: string;
  readonly line: number;
  readonly enforcedBy: string;
  readonly paths: Readonly<Record<PathColumn, readonly string[]>>;
}

/** A rule that does not hold yet; `issue` says what brings it. */
export interface RuleNotYet {
  readonly id: string;
  readonly line: number;
  readonly issue: string;
}

/** What RULES.md says, and what is wrong with the page itself. */
export interface RulesPage {
  readonly rules: readonly Rule[];
  readonly notYet: readonly RuleNotYet[];
  readonly problems: readonly { line: number; problem: string }[];
}

interface Row {
  readonly line: number;
  readonly cells: ReadonlyMap<string, string>;
}

interface Table {
  readonly line: number;
  readonly heading: string;
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
}

/** Parses RULES.md. Never throws: whatever cannot be read is a problem of the page. */
export function parseRules(text: string): RulesPage {
  const problems: { line: number; problem: string }[] = [];
  const rules: Rule[] = [];
  const notYet: RuleNotYet[] = [];
  const seen = new Map<string, number>();
  let foundRules = false;
  for (const table of readTables(text).filter((candidate) => candidate.columns.includes('id'))) {
    const pending = /not yet/i.test(table.heading);
    foundRules ||= !pending;
    const missing = (pending ? NOT_YET_COLUMNS : RULE_COLUMNS).filter((column) => !table.columns.includes(column));
    if (missing.length > 0) problems.push({ line: table.line, problem: `this table lacks the columns: ${missing.join(', ')}.` });
    for (const row of table.rows) {
      const problem = problemOfRow(row, pending, seen);
      if (problem !== undefined) problems.push({ line: row.line, problem });
      else if (pending) notYet.push({ id: cell(row, 'id'), line: row.line, issue: cell(row, 'issue') });
      else rules.push(toRule(row));
    }
  }
  if (!foundRules) problems.push({ line: 1, problem: `has no table of rules with the columns | ${RULE_COLUMNS.join(' | ')} |.` });
  return { rules, notYet, problems };
}

function problemOfRow(row: Row, pending: boolean, seen: Map<string, number>): string | undefined {
  const id = cell(row, 'id');
  if (!RULE_ID.test(id)) return `"${id}" is not a rule id. Ids are R1, R2, …`;
  const earlier = seen.get(id);
  if (earlier !== undefined) return `${id} stands twice, first in line ${earlier}. A rule either holds or is not there yet.`;
  seen.set(id, row.line);
  if (pending && cell(row, 'issue') === '') return `${id} does not say which issue brings it.`;
  return undefined;
}

function toRule(row: Row): Rule {
  const paths = (column: PathColumn): string[] => pathsIn(cell(row, column));
  return {
    id: cell(row, 'id'),
    line: row.line,
    enforcedBy: cell(row, 'enforced by'),
    paths: { 'enforced by': paths('enforced by'), 'obeyed by': paths('obeyed by'), 'proved by': paths('proved by') },
  };
}

function pathsIn(text: string): string[] {
  return [...new Set([...text.matchAll(OWN_PATH)].map((match) => match[0].replace(/[.-]+$/, '')))];
}

function cell(row: Row, column: string): string {
  return row.cells.get(column) ?? '';
}

function readTables(text: string): Table[] {
  const tables: Table[] = [];
  const lines = text.split('\n');
  let heading = '';
  let open: { columns: string[]; rows: Row[] } | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.startsWith('#')) heading = line;
    if (!line.trimStart().startsWith('|')) {
      open = undefined;
    } else if (open !== undefined && !SEPARATOR_ROW.test(line)) {
      const cells = splitRow(line);
      open.rows.push({ line: index + 1, cells: new Map(open.columns.map((column, position) => [column, cells[position] ?? ''])) });
    } else if (open === undefined && SEPARATOR_ROW.test(lines[index + 1] ?? '')) {
      open = { columns: splitRow(line).map((column) => column.toLowerCase()), rows: [] };
      tables.push({ line: index + 1, heading, ...open });
    }
  }
  return tables;
}

/** Cells of one table row; `\|` is a bar inside a cell. Emphasis around a cell (**R1**, `R1`) is dropped. */
function splitRow(line: string): string[] {
  return line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((text) =>
      text
        .trim()
        .replaceAll('\\|', '|')
        .replace(/^([*_`]+)([^*_`]*)\1$/, '$2'),
    );
}
