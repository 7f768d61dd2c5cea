/**
 * Reading a Dockerfile as what it says, and making on disk the tree that its last stage copies together.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

export interface Instruction {
  readonly word: string;
  readonly text: string;
}

export interface Stage {
  /** With its variables replaced. */
  readonly image: string;
  readonly name: string | null;
  readonly instructions: readonly Instruction[];
}

export interface Copy {
  /** null: the project. */
  readonly from: string | null;
  readonly sources: readonly string[];
  readonly target: string;
}

/** The stages of a Dockerfile. Throws on an instruction before the first FROM that is no ARG. */
export function readDockerfile(file: string): readonly Stage[] {
  const lines = readFileSync(path.join(PROJECT, file), 'utf8')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n');
  const instructions = lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, word = '', text = ''] = /^([A-Z]+)\s+(.+)$/.exec(line.trim()) ?? [];
      if (word === '') throw new Error(`${file}: no instruction: ${line}`);
      return { word, text: text.trim() };
    });
  const variables = new Map<string, string>();
  const stages: { image: string; name: string | null; instructions: Instruction[] }[] = [];
  for (const instruction of instructions) {
    const { word, text } = instruction;
    const open = stages.at(-1);
    if (word === 'FROM') {
      const [, image = '', name = null] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(text) ?? [];
      stages.push({ image: image.replace(/\$\{(\w+)\}/g, (_, variable: string) => variables.get(variable) ?? ''), name, instructions: [] });
    } else if (open) {
      open.instructions.push(instruction);
    } else {
      if (word !== 'ARG') throw new Error(`${file}: ${word} before FROM`);
      const [name = '', value = ''] = text.split('=');
      variables.set(name, value);
    }
  }
  return stages;
}

export function copiesOf({ instructions }: Stage): readonly Copy[] {
  return instructions
    .filter(({ word }) => word === 'COPY')
    .map(({ text }) => {
      const parts = text.split(/\s+/);
      const flags = parts.filter((part) => part.startsWith('--'));
      const names = parts.filter((part) => !part.startsWith('--'));
      const from = flags.map((flag) => /^--from=(.+)$/.exec(flag)?.[1]).find((name) => name !== undefined) ?? null;
      return { from, sources: names.slice(0, -1), target: names.at(-1) ?? '' };
    });
}

/** The words of an instruction that is written as a JSON list; the last one of the stage counts. */
export function listOf({ instructions }: Stage, word: string): readonly string[] {
  const text = instructions.findLast((one) => one.word === word)?.text ?? '[]';
  return JSON.parse(text.slice(text.indexOf('['))) as string[];
}

/** True when a path of the project reaches the build past its .dockerignore. */
export function isSent(ignoreFile: string, name: string): boolean {
  const patterns = readFileSync(path.join(PROJECT, ignoreFile), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const prefixes = name.split('/').map((_, at, parts) => parts.slice(0, at + 1).join('/'));
  let sent = true;
  for (const pattern of patterns) {
    const [wanted, body] = pattern.startsWith('!') ? [true, pattern.slice(1)] : [false, pattern];
    const source = body
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replace(/\*\*\//g, '(?:.*/)?')
      .replace(/(?<!\.)\*/g, '[^/]*');
    if (prefixes.some((prefix) => new RegExp(`^${source}$`).test(prefix))) sent = wanted;
  }
  return sent;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean; readonly devOptional?: boolean }>>;
}

/** Top-level packages that `npm ci --omit=dev` installs, and with `optional: false` also `--omit=optional`. */
export function productionPackages({ optional }: { readonly optional: boolean }): readonly string[] {
  const { packages } = JSON.parse(readFileSync(path.join(PROJECT, 'package-lock.json'), 'utf8')) as Lock;
  return Object.entries(packages)
    .filter(([where, { dev, devOptional, optional: isOptional }]) => where !== '' && !dev && !devOptional && (optional || !isOptional))
    .map(([where]) => where.replace(/^node_modules\//, ''))
    .filter((name) => !name.includes('node_modules/') && existsSync(path.join(PROJECT, 'node_modules', name)));
}

/** Lays in `dir` what the last stage copies from the project, beside the packages of production. */
export function layTree(dir: string, stage: Stage, packages: readonly string[]): void {
  for (const { from, sources } of copiesOf(stage)) {
    if (from !== null) continue;
    for (const source of sources) cpSync(path.join(PROJECT, source), path.join(dir, source), { recursive: true });
  }
  for (const name of packages) {
    const link = path.join(dir, 'node_modules', name);
    mkdirSync(path.dirname(link), { recursive: true });
    symlinkSync(path.join(PROJECT, 'node_modules', name), link);
  }
}
