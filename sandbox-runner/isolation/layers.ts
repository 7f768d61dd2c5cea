/**
 * Owns: the two layers of a sandbox as command lines. The outer one holds the runner: its own files, processes, users, names, no network but
 * one socket to the gateway. The inner one is made for each command: no socket, no credential, and it does not see the runner.
 * What is not named here does not exist inside: the lists are of what is there, never of what is hidden.
 * Does not own: whether this machine can do it (probe.ts), starting anything (host/, tools/command.ts).
 */
import { WORKSPACE_DIR } from '../config.ts';

/** File descriptors that a layer is started with. */
export const RUNNER_FDS = { filter: 3, toolFilter: 4 } as const;
export const TOOL_FDS = { filter: 3 } as const;

/** Where things are inside of the runner's layer. */
export const INSIDE = {
  node: '/opt/node',
  project: '/opt/heph',
  cache: '/opt/cache',
  toolFilter: '/opt/sandbox/tool.bpf',
  gatewayDir: '/run/gw',
  socket: '/run/gw/gw.sock',
} as const;

/** Limits of one command. Its memory is address space. */
const TOOL_LIMITS = {
  openFiles: 256,
  fileBytes: 64 * 1024 * 1024,
  cpuSeconds: 60,
  processes: 100,
  memoryBytes: 1024 * 1024 * 1024,
} as const;
const TOOL_TMP_BYTES = 64 * 1024 * 1024;
const RUNNER_LIMITS = { openFiles: 1_024 } as const;
const RUNNER_TMP_BYTES = 64 * 1024 * 1024;
/** Shared memory counts against nobody's disk. */
const SHM_BYTES = 16 * 1024 * 1024;

const NAMESPACES = [
  '--as-pid-1',
  ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--die-with-parent', '--new-session', '--hostname', 'sandbox'],
];
/** The system's programs and libraries, and nothing of /etc but the links that programs are found through. */
const SYSTEM = [
  ...['--ro-bind', '/usr', '/usr'],
  ...['bin', 'lib', 'lib64', 'sbin'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
  ...['--ro-bind-try', '/etc/alternatives', '/etc/alternatives'],
  ...['--proc', '/proc', '--dev', '/dev', '--size', String(SHM_BYTES), '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
];

export interface RunnerLayerOptions {
  readonly bwrap: string;
  readonly prlimit: string;
  /** The folder of the node binary. */
  readonly nodeDir: string;
  /** Folders and files of this project that a runner needs: path there, path inside of `INSIDE.project`. */
  readonly project: readonly (readonly [from: string, to: string])[];
  /** Node's compile cache. Only a runner that will never get a conversation may write it: it is code. */
  readonly cache: { readonly dir: string; readonly writable: boolean };
  /** The folder of the one socket, or null for a runner that talks to nobody. */
  readonly gatewayDir: string | null;
  readonly workBytes: number;
}

/** The command line that runs `command` in the runner's layer. The filters come in as RUNNER_FDS. */
export function runnerLayer(options: RunnerLayerOptions, command: readonly string[]): string[] {
  const { bwrap, prlimit, nodeDir, project, cache, gatewayDir, workBytes } = options;
  return [
    ...[prlimit, '--core=0', `--nofile=${RUNNER_LIMITS.openFiles}`, bwrap, ...NAMESPACES, ...SYSTEM],
    ...['--cap-drop', 'ALL', '--seccomp', String(RUNNER_FDS.filter)],
    ...['--perms', '0755', '--dir', '/opt', '--ro-bind', nodeDir, INSIDE.node],
    ...['--perms', '0444', '--ro-bind-data', String(RUNNER_FDS.toolFilter), INSIDE.toolFilter],
    ...project.flatMap(([from, to]) => ['--ro-bind', from, `${INSIDE.project}/${to}`]),
    ...[cache.writable ? '--bind' : '--ro-bind', cache.dir, INSIDE.cache],
    ...(gatewayDir === null ? [] : ['--ro-bind', gatewayDir, INSIDE.gatewayDir]),
    ...['--size', String(RUNNER_TMP_BYTES), '--tmpfs', '/tmp'],
    ...['--perms', '0755', '--size', String(workBytes), '--tmpfs', WORKSPACE_DIR],
    ...['--remount-ro', '/', '--chdir', WORKSPACE_DIR, '--clearenv'],
    ...environment({ PATH: `${INSIDE.node}:/usr/bin:/bin`, HOME: WORKSPACE_DIR, LANG: 'C.UTF-8' }),
    ...['--', ...command],
  ];
}

export interface ToolLayerOptions {
  /** Read-only inside: a command cannot change what it was loaded with. */
  readonly readOnlyDirs?: readonly string[];
}

/** The command line that runs `command` in a layer of its own, inside of the runner's. Its filter comes in as TOOL_FDS. */
export function toolLayer(command: readonly string[], options: ToolLayerOptions = {}): string[] {
  const { openFiles, fileBytes, cpuSeconds, processes, memoryBytes } = TOOL_LIMITS;
  return [
    ...['prlimit', '--core=0', `--nofile=${openFiles}`, `--fsize=${fileBytes}`, `--cpu=${cpuSeconds}`],
    ...[`--nproc=${processes}`, `--as=${memoryBytes}`, 'bwrap', ...NAMESPACES, '--disable-userns', ...SYSTEM],
    ...['--cap-drop', 'ALL', '--seccomp', String(TOOL_FDS.filter)],
    ...['--size', String(TOOL_TMP_BYTES), '--tmpfs', '/tmp', '--bind', WORKSPACE_DIR, WORKSPACE_DIR],
    ...(options.readOnlyDirs ?? []).flatMap((dir) => ['--ro-bind', dir, dir]),
    ...['--remount-ro', '/', '--chdir', WORKSPACE_DIR, '--clearenv'],
    ...environment({ PATH: '/usr/local/bin:/usr/bin:/bin', HOME: WORKSPACE_DIR, LANG: 'C.UTF-8' }),
    ...['--', ...command],
  ];
}

function environment(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]);
}
