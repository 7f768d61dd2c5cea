/**
 * Owns: house rules that need a parser: function length, console, SQL outside db, empty catches; in specs sleeps, .only, quiet skips.
 * Does not own: walking the syntax tree (syntax.ts) or rules about plain text (text.ts).
 */
import type { Finding, Tree } from '../tree.ts';
import { type CodeNode, type FunctionNode, parseCode } from './syntax.ts';

const FUNCTION_LINES_MAX = 70;
const CODE = /\.tsx?$/;
const SPEC = /\.spec\.tsx?$/;
/** Where printing is the job. Not sandbox-runner: its stdout is a protocol. */
const MAY_PRINT = /^(src\/main\.ts$|tools\/|bench\/|bin\/|spec\/support\/)/;
const MAY_HOLD_SQL = /^(db|spec|tools)\//;
const SQL = /^\s*(select\s[\s\S]*\sfrom|insert\s+into|update\s+\S+\s+set|delete\s+from)\s/i;
/** A first word in one case: a sentence such as "Select a model from the list" is no statement. */
const FIRST_WORD_IN_ONE_CASE = /^\s*([a-z]+|[A-Z]+)\s/;
const SUITES = new Set(['describe', 'context', 'suite']);
const SKIPPABLE = new Set([...SUITES, 'it', 'test', 'specify', 'this']);

/** Sees one node, the file's path, and all nodes of the file. */
type Check = (node: CodeNode, path: string, nodes: readonly CodeNode[]) => string | undefined;
const CHECKS: readonly Check[] = [tooLong, prints, holdsSql, swallows, sleepsInSpec, isExclusive, skipsQuietly];

/** Failures in every .ts and .tsx file of the tree; a file that does not parse is one too. */
export function checkCode(tree: Tree): Finding[] {
  return tree.paths.filter((path) => CODE.test(path) && !path.endsWith('.d.ts')).flatMap((path) => checkFile(path, tree.read(path)));
}

function checkFile(path: string, text: string): Finding[] {
  const findings: Finding[] = [];
  try {
    const nodes = parseCode(path, text);
    for (const node of nodes) {
      for (const check of CHECKS) {
        const problem = check(node, path, nodes);
        if (problem !== undefined) findings.push({ path, line: node.line, problem });
      }
    }
  } catch (error) {
    findings.push({ path, problem: `does not parse: ${error instanceof Error ? error.message : String(error)}` });
  }
  return findings;
}

function tooLong(node: CodeNode, path: string, nodes: readonly CodeNode[]): string | undefined {
  if (node.kind !== 'function' || node.lines <= FUNCTION_LINES_MAX) return undefined;
  if (SPEC.test(path) && listsSpecs(node, nodes)) return undefined;
  return `${node.name} has ${node.lines} lines. The limit for a function is ${FUNCTION_LINES_MAX}.`;
}

/** A suite's callback, and a function that makes suites, is a list of specs and not a function anyone reads as one. */
function listsSpecs(node: FunctionNode, nodes: readonly CodeNode[]): boolean {
  const isSuite = (chain: string): boolean => SUITES.has(chain.split('.')[0] ?? '');
  const isInside = ({ line }: CodeNode): boolean => line >= node.line && line < node.line + node.lines;
  return isSuite(node.argumentOf) || nodes.some((other) => other.kind === 'call' && isSuite(other.chain) && isInside(other));
}

function prints(node: CodeNode, path: string): string | undefined {
  if (node.kind !== 'member' || !/^(globalThis\.)?console\./.test(node.chain) || MAY_PRINT.test(path)) return undefined;
  return `uses ${node.chain}. Log through src/kernel/log.ts.`;
}

function holdsSql(node: CodeNode, path: string): string | undefined {
  if (node.kind !== 'text' || MAY_HOLD_SQL.test(path) || !SQL.test(node.value) || !FIRST_WORD_IN_ONE_CASE.test(node.value))
    return undefined;
  return 'holds an SQL statement. Statements live in db/.';
}

function swallows(node: CodeNode): string | undefined {
  if (node.kind !== 'catch' || node.body.trim() !== '') return undefined;
  return 'swallows every error in an empty catch. Say in a comment why that is right.';
}

function sleepsInSpec(node: CodeNode, path: string): string | undefined {
  if (!SPEC.test(path)) return undefined;
  const sleeps = node.kind === 'call' && /^(globalThis\.|window\.)?setTimeout$/.test(node.chain);
  const imports = node.kind === 'text' && /^(node:)?timers(\/promises)?$/.test(node.value);
  return sleeps || imports ? 'sleeps. A spec waits on a condition, an event or a barrier, never on time.' : undefined;
}

function isExclusive(node: CodeNode, path: string): string | undefined {
  if (node.kind !== 'call' || !SPEC.test(path) || !node.chain.endsWith('.only')) return undefined;
  return `calls ${node.chain}, which hides every other spec.`;
}

function skipsQuietly(node: CodeNode, path: string): string | undefined {
  if (node.kind !== 'call' || !SPEC.test(path)) return undefined;
  const [object, method, ...rest] = node.chain.split('.');
  if (method !== 'skip' || rest.length > 0 || !SKIPPABLE.has(object ?? '')) return undefined;
  return `calls ${node.chain}. Skip with skipLoudly(this, reason) of spec/support/skip.ts, so that the run says why.`;
}
