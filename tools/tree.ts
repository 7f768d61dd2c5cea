/**
 * Owns: the list of files that the gate looks at (tracked, or new and not ignored) and how a tool reports what it found.
 * Does not own: any rule about those files.
 * Every tool works on a root that it is given, so that a spec can point it at a small tree in a temporary folder.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Files of one working tree: paths are relative to the root, sorted, with forward slashes. */
export interface Tree {
  readonly root: string;
  readonly paths: readonly string[];
  /** Text of one listed file (UTF-8), cached. */
  read(path: string): string;
}

/** One thing that is wrong, in words that say what to do. `line` counts from 1. */
export interface Finding {
  readonly path: string;
  readonly line?: number;
  readonly problem: string;
}

const LIST_MAX_BYTES = 64 * 1024 * 1024;

/** The product's own root: the folder above tools/. */
export const PROJECT_ROOT = resolve(import.meta.dirname, '..');

/**
 * Lists a working tree through git, so that ignored files (node_modules, dist, .heph) never count.
 * Throws when the root is no git working tree.
 */
export function openTree(root: string): Tree {
  const listed = execFileSync('git', ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard', '--deduplicate', '-z'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: LIST_MAX_BYTES,
    env: withoutGitLocation(process.env),
  });
  const paths = listed
    .split('\0')
    .filter((path) => path !== '' && isFile(join(root, path)))
    .sort();
  const texts = new Map<string, string>();
  return {
    root,
    paths,
    read(path) {
      const text = texts.get(path) ?? readFileSync(join(root, path), 'utf8');
      texts.set(path, text);
      return text;
    },
  };
}

/** Prints findings, failures last, and sets the exit code. `passed` is the line for a clean tree. */
export function report(passed: string, failures: readonly Finding[], warnings: readonly Finding[] = []): void {
  for (const warning of warnings) console.log(`warning: ${describeFinding(warning)}`);
  for (const failure of failures) console.error(describeFinding(failure));
  if (failures.length === 0) {
    console.log(passed);
    return;
  }
  console.error(`${failures.length} ${failures.length === 1 ? 'problem' : 'problems'}`);
  process.exitCode = 1;
}

/** `path:line: problem`, clickable in most terminals. */
export function describeFinding(finding: Finding): string {
  return `${finding.path}${finding.line === undefined ? '' : `:${finding.line}`}: ${finding.problem}`;
}

/** A git hook sets GIT_DIR and its relatives; they would point every listing at the hook's repository. */
function withoutGitLocation(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { GIT_DIR: _dir, GIT_WORK_TREE: _tree, GIT_INDEX_FILE: _index, ...rest } = env;
  return rest;
}

/** git still lists a tracked file that was deleted, and a submodule is a folder. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
