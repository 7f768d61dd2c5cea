/**
 * Owns: a control group for each sandbox: memory, processes, CPU time. Version 2 where this process may write one, else version 1 (root).
 * Does not own: what a machine without them means (probe.ts: isolation without a bound on all of a sandbox's memory).
 */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface SandboxLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  /** Cores; may be a fraction. */
  readonly cpus: number;
}

const ROOT = '/sys/fs/cgroup';
const PERIOD_US = 100_000;
/** Processes that were killed leave their group a moment later. */
const REMOVE_TRIES = 40;
const REMOVE_EVERY_MS = 25;

export interface ControlGroup {
  /** Folders whose `cgroup.procs` a process joins. */
  readonly dirs: readonly string[];
  /** Removes the group once it is empty. Never throws. */
  remove(): Promise<void>;
}

type Setting = readonly [file: string, value: string | number];

function settingsOf({ memoryBytes, processes, cpus }: SandboxLimits): { v2: Setting[]; v1: Record<string, Setting[]> } {
  const quotaUs = Math.round(cpus * PERIOD_US);
  return {
    v2: [
      ['memory.max', memoryBytes],
      ['memory.swap.max', 0],
      ['memory.oom.group', 1],
      ['pids.max', processes],
      ['cpu.max', `${quotaUs} ${PERIOD_US}`],
    ],
    v1: {
      memory: [['memory.limit_in_bytes', memoryBytes]],
      pids: [['pids.max', processes]],
      cpu: [
        ['cpu.cfs_period_us', PERIOD_US],
        ['cpu.cfs_quota_us', quotaUs],
      ],
    },
  };
}

/** Makes a group of this name. Throws when this process may not, or the kernel does not know one of the controllers. */
export function makeControlGroup(name: string, limits: SandboxLimits): ControlGroup {
  const { v2, v1 } = settingsOf(limits);
  const unified = existsSync(path.join(ROOT, 'cgroup.controllers'));
  const groups: [dir: string, settings: Setting[]][] = unified
    ? [[path.join(ROOT, 'heph', name), v2]]
    : Object.entries(v1).map(([controller, settings]) => [path.join(ROOT, controller, 'heph', name), settings]);
  const dirs: string[] = [];
  try {
    if (unified) delegate(path.join(ROOT, 'heph'));
    for (const [dir, settings] of groups) {
      mkdirSync(dir, { recursive: true });
      dirs.push(dir);
      for (const [file, value] of settings) set(dir, file, value);
    }
  } catch (error) {
    for (const dir of dirs) removeNow(dir);
    throw error;
  }
  return { dirs, remove: () => removeAll(dirs) };
}

/** Groups below this one may limit the same things. */
function delegate(dir: string): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(dir, 'cgroup.subtree_control'), '+memory +pids +cpu');
}

/** A kernel without swap accounting has no file for it, and nothing to limit. */
function set(dir: string, file: string, value: string | number): void {
  if (file === 'memory.swap.max' && !existsSync(path.join(dir, file))) return;
  writeFileSync(path.join(dir, file), String(value));
}

function removeNow(dir: string): boolean {
  try {
    rmdirSync(dir);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code === 'ENOENT';
  }
}

async function removeAll(dirs: readonly string[]): Promise<void> {
  let left = dirs;
  for (let nth = 0; nth < REMOVE_TRIES && left.length > 0; nth++) {
    left = left.filter((dir) => !removeNow(dir));
    if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, REMOVE_EVERY_MS));
  }
}
