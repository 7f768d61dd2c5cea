/**
 * What a program loads: the files and packages that its entry reaches by imports, and the files that it names beside itself.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { parseSync } from '@swc/core';

export interface Reached {
  /** Of our own, relative to the project. */
  readonly files: ReadonlySet<string>;
  readonly packages: ReadonlySet<string>;
  /** What `new URL('…', import.meta.url)` names, relative to the project. */
  readonly named: ReadonlySet<string>;
}

interface Node {
  readonly type?: string;
  readonly [key: string]: unknown;
}

/** Walks from `entries`. Types are erased before the program runs: their imports do not count. */
export function reach(project: string, entries: readonly string[]): Reached {
  const [files, packages, named] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const open = [...entries];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (files.has(file)) continue;
    files.add(file);
    const program = parseSync(readFileSync(path.join(project, file), 'utf8'), { syntax: 'typescript', tsx: false, target: 'es2024' });
    const beside = (name: string): string => path.join(path.dirname(file as string), name);
    visit(program as unknown as Node, {
      imports: (name) => {
        if (name.startsWith('.')) open.push(beside(name));
        else if (!isBuiltin(name))
          packages.add(
            name
              .split('/')
              .slice(0, name.startsWith('@') ? 2 : 1)
              .join('/'),
          );
      },
      names: (name) => void named.add(beside(name)),
    });
  }
  for (const file of files) if (!existsSync(path.join(project, file))) throw new Error(`${file} is imported and is not there`);
  return { files, packages, named };
}

interface Seen {
  imports(name: string): void;
  names(name: string): void;
}

function visit(node: Node, seen: Seen): void {
  const literal = (value: unknown): string | undefined => {
    const { type, value: text } = (value ?? {}) as Node;
    return type === 'StringLiteral' ? String(text) : undefined;
  };
  const argument = literal(((node['arguments'] as { expression: unknown }[] | undefined) ?? [])[0]?.expression);
  const source = literal(node['source']);
  if (source !== undefined && node['typeOnly'] !== true) seen.imports(source);
  if (node.type === 'CallExpression' && argument !== undefined && loads(node['callee'] as Node)) seen.imports(argument);
  if (node.type === 'NewExpression' && (node['callee'] as Node)['value'] === 'URL' && argument?.startsWith('.')) seen.names(argument);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === 'object' && child !== null) visit(child as Node, seen);
    }
  }
}

/** `import(…)`, `import.meta.resolve(…)`, `createRequire(…)(…)` and `createRequire(…).resolve(…)`. */
function loads(callee: Node): boolean {
  if (callee.type === 'Import') return true;
  const object = (callee.type === 'MemberExpression' ? callee['object'] : callee) as Node;
  if (callee.type === 'MemberExpression' && (callee['property'] as Node)['value'] !== 'resolve') return false;
  return object.type === 'MetaProperty' || (object.type === 'CallExpression' && (object['callee'] as Node)['value'] === 'createRequire');
}
