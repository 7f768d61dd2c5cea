/**
 * Members of an object that its kind does not have. A cluster drops a misspelt member with a warning, and the validators of the models pass it:
 * so the declarations of the models are read for what each kind has.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseSync } from '@swc/core';

interface Node {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: a node of the syntax tree.
  readonly [key: string]: any;
}

/** A type, and the declaration file that its names belong to. */
interface Shape {
  readonly node: Node;
  readonly module: Module;
}

interface Module {
  readonly file: string;
  /** Declarations of the file by the names that it exports. */
  readonly exported: ReadonlyMap<string, Node>;
  /** Local name -> where it comes from. */
  readonly imported: ReadonlyMap<string, { readonly specifier: string; readonly name: string }>;
}

const modules = new Map<string, Module>();

/** Paths of members that `object` has and its kind has not. `declaration` is where a module with the kind is, for example `kubernetes-models/v1/Pod`. */
export function unknownMembers(object: object, declaration: string, kind: string): readonly string[] {
  const module = load(fileURLToPath(import.meta.resolve(declaration)));
  const node = module.exported.get(`I${kind}`);
  if (!node) throw new Error(`${declaration} does not declare I${kind}`);
  return unknownIn(object, { node, module }, '');
}

function load(script: string): Module {
  const file = script.replace(/\.js$/, '.d.ts');
  const known = modules.get(file);
  if (known) return known;
  const { body } = parseSync(readFileSync(file, 'utf8'), { syntax: 'typescript', target: 'es2024' }) as unknown as { body: Node[] };
  const declared = new Map<string, Node>();
  const exported = new Map<string, Node>();
  const imported = new Map<string, { specifier: string; name: string }>();
  for (const node of body) {
    const declaration = node['declaration'] as Node | undefined;
    if (node.type === 'ExportDeclaration' && declaration?.['id']) declared.set(declaration['id'].value, declaration);
    if (node.type !== 'ImportDeclaration') continue;
    for (const { local, imported: from } of node['specifiers'] as Node[])
      imported.set(local.value, { specifier: node['source'].value, name: (from ?? local).value });
  }
  for (const [name, node] of declared) exported.set(name, node);
  for (const { specifiers = [] } of body.filter(({ type }) => type === 'ExportNamedDeclaration')) {
    for (const { orig, exported: as } of specifiers as Node[]) {
      const node = declared.get(orig.value);
      if (node) exported.set((as ?? orig).value, node);
    }
  }
  const module = { file, exported, imported };
  modules.set(file, module);
  return module;
}

/** The declaration behind a name; null for what is built in, or is not followed. */
function named(name: string, module: Module): Shape | null {
  const own = module.exported.get(name);
  if (own) return { node: own, module };
  const from = module.imported.get(name);
  if (!from) return null;
  const script = from.specifier.startsWith('.')
    ? path.join(path.dirname(module.file), from.specifier)
    : fileURLToPath(import.meta.resolve(from.specifier, pathToFileURL(module.file).href));
  const target = load(script);
  const node = target.exported.get(from.name);
  return node ? { node, module: target } : null;
}

function unknownIn(value: unknown, { node, module }: Shape, where: string): readonly string[] {
  switch (node.type) {
    case 'TsTypeAliasDeclaration':
    case 'TsParenthesizedType':
      return unknownIn(value, { node: node['typeAnnotation'], module }, where);
    case 'TsTypeReference': {
      const name: string = node['typeName'].value;
      const [element] = (node['typeParams']?.params ?? []) as Node[];
      if (name === 'Array' && element) return inEach(value, { node: element, module }, where);
      const shape = named(name, module);
      return shape ? unknownIn(value, shape, where) : [];
    }
    case 'TsArrayType':
      return inEach(value, { node: node['elemType'], module }, where);
    case 'TsInterfaceDeclaration':
    case 'TsTypeLiteral':
      return unknownInObject(value, { node, module }, where);
    default:
      return [];
  }
}

function inEach(value: unknown, shape: Shape, where: string): readonly string[] {
  return Array.isArray(value) ? value.flatMap((one, at) => unknownIn(one, shape, `${where}[${at}]`)) : [];
}

function unknownInObject(value: unknown, shape: Shape, where: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { members, any } = membersOf(shape);
  return Object.entries(value).flatMap(([name, member]) => {
    const known = members.get(name) ?? any;
    return known ? unknownIn(member, known, `${where}.${name}`) : [`${where}.${name}`];
  });
}

/** The members of an interface with those that it inherits, and the type of all others where it is a map. */
function membersOf({ node, module }: Shape): { members: ReadonlyMap<string, Shape>; any: Shape | null } {
  const members = new Map<string, Shape>();
  let any: Shape | null = null;
  for (const { expression } of (node['extends'] ?? []) as Node[]) {
    const parent = named(expression.value, module);
    if (parent) for (const [name, shape] of membersOf(parent).members) members.set(name, shape);
  }
  if (((node['extends'] ?? []) as Node[]).some(({ expression }) => expression.value === 'TypeMeta')) {
    for (const name of ['apiVersion', 'kind']) members.set(name, { node: { type: 'TsKeywordType' }, module });
  }
  const body = (node.type === 'TsInterfaceDeclaration' ? node['body'].body : node['members']) as Node[];
  for (const member of body) {
    const type = member['typeAnnotation']?.typeAnnotation as Node;
    if (member.type === 'TsPropertySignature') members.set(member['key'].value, { node: type, module });
    if (member.type === 'TsIndexSignature') any = { node: type, module };
  }
  return { members, any };
}
