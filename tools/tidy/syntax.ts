/**
 * Owns: turning a TypeScript file into the few kinds of node that the house rules look at.
 * Does not own: the rules (code.ts). TypeScript 7 has no JavaScript API, so the parser is swc's.
 */
import { parseSync } from '@swc/core';

/** A function with a body. `line` is that of the opening brace; `argumentOf` is the call that it is handed to, '' for none. */
export interface FunctionNode {
  readonly kind: 'function';
  readonly line: number;
  readonly lines: number;
  readonly name: string;
  readonly argumentOf: string;
}

/**
 * A node of interest, with the line it starts on (from 1). `chain` is what is called or read, such as `console.log`; `body` of a catch
 * is its source between the braces.
 */
export type CodeNode =
  | FunctionNode
  | { readonly kind: 'catch'; readonly line: number; readonly body: string }
  | { readonly kind: 'call' | 'member'; readonly line: number; readonly chain: string }
  | { readonly kind: 'text'; readonly line: number; readonly value: string };

interface SyntaxNode {
  readonly type: string;
  readonly span?: { readonly start: number; readonly end: number };
  readonly [key: string]: unknown;
}

/** Where a node stands: the name it is bound to and the call whose argument it is ('' for none). */
interface Place {
  readonly name: string;
  readonly argumentOf: string;
}

/** The file as bytes, which is what swc's offsets count, and the line of an offset. */
interface Source {
  readonly text: Buffer;
  readonly lineAt: (offset: number) => number;
}

const NOWHERE: Place = { name: 'a function', argumentOf: '' };

/**
 * Parses one file and returns its nodes of interest in order. `lines` of a function counts its body from the line of the
 * opening brace to that of the closing one. Throws when the file does not parse.
 */
export function parseCode(path: string, text: string): CodeNode[] {
  const program = parseSync(text, { syntax: 'typescript', tsx: path.endsWith('x'), target: 'es2024' });
  const source = { text: Buffer.from(text), lineAt: lineFinder(text) };
  const found: CodeNode[] = [];
  visit({ ...program }, NOWHERE, (node, place) => {
    const interest = toCodeNode(node, place, source);
    if (interest !== undefined) found.push(interest);
  });
  return found;
}

function toCodeNode(node: SyntaxNode, place: Place, { text, lineAt }: Source): CodeNode | undefined {
  const line = lineAt(node.span?.start ?? 1);
  const body = bodyOf(node);
  if (body?.span !== undefined) {
    const lines = lineAt(body.span.end - 1) - lineAt(body.span.start) + 1;
    return { kind: 'function', line: lineAt(body.span.start), lines, name: nameOf(node) ?? place.name, argumentOf: place.argumentOf };
  }
  switch (node.type) {
    case 'CallExpression':
      return { kind: 'call', line, chain: chainOf(node['callee']) };
    case 'CatchClause': {
      const { start, end } = toNode(node['body'])?.span ?? { start: 1, end: 1 };
      return { kind: 'catch', line, body: text.toString('utf8', start, end - 2) };
    }
    case 'MemberExpression':
      return { kind: 'member', line, chain: chainOf(node) };
    case 'StringLiteral':
      return { kind: 'text', line, value: String(node['value']) };
    case 'TemplateLiteral':
      return {
        kind: 'text',
        line,
        value: nodesIn(node['quasis'])
          .map((quasi) => String(quasi['raw']))
          .join('?'),
      };
    default:
      return undefined;
  }
}

/** The body of anything that can be called; undefined for other nodes and for signatures without a body. */
function bodyOf(node: SyntaxNode): SyntaxNode | undefined {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
    case 'Constructor':
    case 'MethodProperty':
    case 'GetterProperty':
    case 'SetterProperty':
      return toNode(node['body']);
    case 'ClassMethod':
    case 'PrivateMethod':
      return toNode(toObject(node['function'])?.['body']);
    default:
      return undefined;
  }
}

function visit(node: SyntaxNode, place: Place, see: (node: SyntaxNode, place: Place) => void): void {
  see(node, place);
  const inside = nameOf(node) === undefined ? place : { name: nameOf(node) ?? '', argumentOf: '' };
  for (const [key, value] of Object.entries(node)) {
    const isArgument = node.type === 'CallExpression' && key === 'arguments';
    const callee = isArgument ? chainOf(node['callee']) : '';
    const childPlace = isArgument ? { name: `the callback of ${callee || 'a call'}`, argumentOf: callee } : inside;
    for (const child of nodesIn(value)) visit(child, childPlace, see);
  }
}

/** Nodes directly below a property. Some (an argument, a class method's function) sit in a plain wrapper object. */
function nodesIn(value: unknown): SyntaxNode[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  const object = toObject(value);
  if (object === undefined) return [];
  const node = toNode(object);
  return node === undefined ? Object.values(object).flatMap(nodesIn) : [node];
}

/** The name that a declaration, a property or a method gives to the function in it. */
function nameOf(node: SyntaxNode): string | undefined {
  if (node.type === 'Constructor') return 'constructor';
  const named = toObject(node['identifier'] ?? node['id'] ?? node['key']);
  const name = named?.['value'] ?? toObject(named?.['id'])?.['value'];
  return typeof name === 'string' ? name : undefined;
}

/** `a.b.c` for an identifier, `this` or a chain of members; '' for any other expression. */
function chainOf(value: unknown): string {
  const node = toNode(value);
  if (node?.type === 'Identifier') return String(node['value']);
  if (node?.type === 'ThisExpression') return 'this';
  if (node?.type !== 'MemberExpression') return '';
  const object = chainOf(node['object']);
  const property = toNode(node['property']);
  return `${object}.${property?.type === 'Identifier' ? String(property['value']) : '?'}`;
}

function toObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
}

function toNode(value: unknown): SyntaxNode | undefined {
  const object = toObject(value);
  return typeof object?.['type'] === 'string' ? (object as SyntaxNode) : undefined;
}

/** swc gives byte offsets that start at 1. */
function lineFinder(text: string): (offset: number) => number {
  const starts = [0];
  const bytes = Buffer.from(text);
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset - 1) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}
