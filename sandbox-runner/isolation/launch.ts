/**
 * Owns: starting a process in the runner's layer: the filters as open files, the unprivileged user of a server that is root, the control
 * group, and what of this installation a runner may see.
 * Does not own: the lists of the layers (layers.ts), what runs in them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ControlGroup, makeControlGroup, type SandboxLimits } from './cgroup.ts';
import { RUNNER_FDS, runnerLayer } from './layers.ts';
import { type FilteredLayer, seccompFilter } from './seccomp.ts';

/** The user of the sandboxes of a server that is root; it needs no entry anywhere and owns nothing. */
export const SANDBOX_UID = 64_777;

const PROJECT = path.join(import.meta.dirname, '../..');
/** All of this project that a runner reads. */
const SEEN = ['package.json', 'src/kernel', 'src/contract', 'sandbox-runner', 'node_modules'];

/** Programs of the system that make the layers. */
export interface Programs {
  readonly bash: string;
  readonly bwrap: string;
  readonly prlimit: string;
  /** Only a server that is root needs it. */
  readonly setpriv: string | null;
}

export interface LaunchOptions {
  readonly programs: Programs;
  readonly cache: { readonly dir: string; readonly writable: boolean };
  readonly gatewayDir: string | null;
  readonly workBytes: number;
  /** null: this machine has no control groups for us. */
  readonly limits: SandboxLimits | null;
  /** Unique among the sandboxes of this machine. */
  readonly name: string;
}

export interface Launched {
  readonly child: ChildProcess;
  /** Removes what was made for it. Call it when the process is gone. */
  cleanUp(): Promise<void>;
}

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Starts `command` in a runner's layer. Its standard streams are pipes. */
export function launch(options: LaunchOptions, command: readonly string[]): Launched {
  const group = options.limits === null ? null : makeControlGroup(options.name, options.limits);
  const filters = [openFilter('runner'), openFilter('tool')];
  const layer = runnerLayer(
    { ...options, ...options.programs, nodeDir: path.dirname(realpathSync(process.execPath)), project: project() },
    command,
  );
  const [file = '', ...args] = [...joining(options.programs.bash, group), ...unprivileged(options.programs), ...layer];
  const stdio: ('pipe' | number)[] = ['pipe', 'pipe', 'pipe'];
  stdio[RUNNER_FDS.filter] = filters[0] as number;
  stdio[RUNNER_FDS.toolFilter] = filters[1] as number;
  try {
    const child = spawn(file, args, { cwd: '/', env: { PATH: '/usr/bin:/bin' }, stdio, detached: false });
    return { child, cleanUp: async () => group?.remove() };
  } finally {
    for (const fd of filters) closeSync(fd);
  }
}

function project(): (readonly [string, string])[] {
  return SEEN.map((name) => [realpathSync(path.join(PROJECT, name)), name]);
}

/**
 * The process joins its group before it becomes anything else (whatever it starts is born there), and closes every file that this server was
 * itself started with: those are not ours to hand down, and bwrap would.
 */
const BEFORE = [
  'IFS=:; for d in $0; do echo $$ > "$d/cgroup.procs" || exit 125; done',
  `for f in /proc/self/fd/*; do n=\${f##*/}; if [ "$n" -gt ${RUNNER_FDS.toolFilter} ]; then eval "exec $n<&-"; fi; done 2>/dev/null`,
  'exec "$@"',
].join('; ');

function joining(bash: string, group: ControlGroup | null): string[] {
  return [bash, '--norc', '--noprofile', '-c', BEFORE, (group?.dirs ?? []).join(':')];
}

function unprivileged({ setpriv }: Programs): string[] {
  if (!isRoot() || setpriv === null) return [];
  return [setpriv, `--reuid=${SANDBOX_UID}`, `--regid=${SANDBOX_UID}`, '--clear-groups', '--inh-caps=-all'];
}

/** An open file without a name. */
function openFilter(layer: FilteredLayer): number {
  const bytes = seccompFilter(layer);
  if (bytes === null) throw new Error('there is no system call filter for this processor');
  const dir = mkdtempSync(path.join(tmpdir(), 'heph-filter-'));
  try {
    writeFileSync(path.join(dir, layer), bytes);
    return openSync(path.join(dir, layer), 'r');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
