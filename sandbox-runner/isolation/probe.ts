/**
 * Owns: whether this machine can isolate sandboxes, decided once at start by running one: nothing is concluded from a version or a setting.
 * There is no fall-back at run time: what is decided here holds until the server ends.
 * Does not own: the layers themselves.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { makeControlGroup, type SandboxLimits } from './cgroup.ts';
import { isRoot, launch, type Programs } from './launch.ts';
import { INSIDE } from './layers.ts';
import type { Facts } from './probe-facts.ts';
import { seccompFilter } from './seccomp.ts';

/**
 * `isolated`: all of it. `isolated-degraded`: no control groups, so nothing bounds the memory of all processes of a sandbox together.
 * `none`: no isolation; commands are refused.
 */
export type Tier = 'isolated' | 'isolated-degraded' | 'none';

export interface Isolation {
  readonly tier: Tier;
  /** A sentence for an operator: why it is not better. Empty for `isolated`. */
  readonly why: string;
  /** What to do about it, a sentence; empty when nothing can be done. */
  readonly cure: string;
  /** null with tier `none`. */
  readonly programs: Programs | null;
  /** null without control groups. */
  readonly limits: SandboxLimits | null;
}

export interface ProbeOptions {
  readonly limits: SandboxLimits;
  /** A folder that the sandbox user may read and write, for Node's compile cache. */
  readonly cacheDir: string;
}

const PROBE_MAX_MS = 15_000;
const PROBE_WORK_BYTES = 1024 * 1024;
const PLACES = ['/usr/bin', '/bin', '/usr/local/bin', '/sbin', '/usr/sbin'];
const INSTALL = 'Install bubblewrap (for example: apt-get install bubblewrap) and start Heph again.';
const USER_NAMESPACES =
  'Let ordinary users make user namespaces: sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, ' +
  'kernel.apparmor_restrict_unprivileged_userns=0 (or a profile for bwrap); in a container also a seccomp profile that allows them.';

function none(why: string, cure: string): Isolation {
  return { tier: 'none', why, cure, programs: null, limits: null };
}

function find(name: string): string | null {
  return PLACES.map((dir) => path.join(dir, name)).find((file) => existsSync(file)) ?? null;
}

/** Runs a sandbox and says what this machine can do. Never rejects. */
export async function probeIsolation(options: ProbeOptions): Promise<Isolation> {
  if (process.platform !== 'linux')
    return none('Only Linux can isolate local sandboxes.', 'Run Heph on Linux, or sandboxes on Kubernetes.');
  if (seccompFilter('runner') === null)
    return none(`There is no system call filter for ${process.arch} processors.`, 'Use an x86-64 machine.');
  const [bash, bwrap, prlimit, setpriv] = ['bash', 'bwrap', 'prlimit', 'setpriv'].map(find);
  if (!bash) return none('bash is not installed.', 'Install bash and start Heph again.');
  if (!bwrap) return none('bwrap is not installed.', INSTALL);
  if (!prlimit) return none('prlimit is not installed.', 'Install util-linux and start Heph again.');
  if (isRoot() && !setpriv)
    return none('The server is root and setpriv is not installed.', 'Install util-linux, or run Heph as an ordinary user.');
  const programs = { bash, bwrap, prlimit, setpriv: setpriv ?? null };
  const wrong = await tryOne(programs, options.cacheDir);
  if (wrong !== null) return none(wrong, USER_NAMESPACES);
  const degraded = tryControlGroup(options.limits);
  if (degraded === null) return { tier: 'isolated', why: '', cure: '', programs, limits: options.limits };
  return {
    ...{ tier: 'isolated-degraded', programs, limits: null },
    why: `Control groups are not available (${degraded}): the memory of one sandbox is bounded for each process, not for all of them together.`,
    cure: 'Run Heph as root, or with a delegated control group (systemd: Delegate=yes).',
  };
}

/** What is wrong with a sandbox on this machine; null when it is one. */
async function tryOne(programs: Programs, cacheDir: string): Promise<string | null> {
  const name = `probe-${process.pid}`;
  const cache = { dir: cacheDir, writable: false };
  try {
    const command = [`${INSIDE.node}/node`, `${INSIDE.project}/sandbox-runner/isolation/probe-child.ts`];
    const { child } = launch({ programs, name, cache, gatewayDir: null, workBytes: PROBE_WORK_BYTES, limits: null }, command);
    const timer = setTimeout(() => child.kill('SIGKILL'), PROBE_MAX_MS);
    child.stdin?.end();
    const [out, complaint] = await Promise.all([read(child.stdout), read(child.stderr), closed(child)]);
    clearTimeout(timer);
    return judge(out, complaint);
  } catch (error) {
    return `A sandbox could not be started: ${(error as { code?: string }).code ?? 'unknown error'}.`;
  }
}

function judge(out: string, complaint: string): string | null {
  const line = out.trim();
  if (line === '') return `A sandbox could not be started: ${oneLine(complaint)}`;
  const { runner, tool, why } = JSON.parse(line) as { runner: Facts; tool: Facts | null; why: string };
  if (tool === null) return `A command could not be isolated from its runner: ${oneLine(why)}`;
  if (!runner.confined || !tool.confined) return 'A sandbox keeps privileges, or has no system call filter.';
  if (!runner.offline || !tool.offline) return 'A sandbox can see the network of this machine.';
  return null;
}

function oneLine(text: string): string {
  const line = text.trim().split('\n')[0] ?? '';
  return line === '' ? 'it said nothing.' : `${line.slice(0, 200)}.`;
}

function tryControlGroup(limits: SandboxLimits): string | null {
  try {
    const group = makeControlGroup(`probe-${process.pid}`, limits);
    void group.remove();
    return null;
  } catch (error) {
    return (error as { code?: string }).code ?? 'unknown error';
  }
}

async function read(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) text += String(chunk);
  return text;
}

function closed(child: { once(event: 'close' | 'error', listener: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => {
    child.once('close', resolve);
    child.once('error', resolve);
  });
}
