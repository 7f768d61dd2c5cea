/**
 * Owns: sandboxes as processes of this machine: whether they are isolated (decided once, at start), what a person and an operator are told
 * about it, and the host that starts them.
 * Does not own: how a process is isolated (sandbox-runner/isolation).
 */
import type { SandboxHost } from '../actors/index.ts';
import { type LocalIsolation, LocalSandboxHost, type LocalSandboxHostOptions } from '../sandbox-runner/host/local.ts';
import { compileCacheDir, fillCompileCache } from '../sandbox-runner/isolation/compile-cache.ts';
import { type Isolation, probeIsolation } from '../sandbox-runner/isolation/probe.ts';
import { sandboxRuntimeDir } from '../sandbox-runner/isolation/runtime-dir.ts';
import type { Config } from './config.ts';
import { StartError } from './database.ts';
import { type HttpListener, openDoor } from './http/index.ts';
import { systemClock } from './kernel/clock.ts';
import type { Log } from './kernel/log.ts';

const MB = 1024 * 1024;
const OFF: Isolation = {
  ...{ tier: 'none', programs: null, limits: null },
  why: 'HEPH_SANDBOX_ISOLATION is off.',
  cure: 'Unset it and start Heph again.',
};

export interface LocalSandboxes {
  readonly isolation: Isolation;
  readonly runtimeDir: string;
  readonly compileCacheDir: string;
}

/** Asks the machine. Rejects with a StartError when isolation is required and not to be had. */
export async function prepareLocalSandboxes(config: Config, log: Log): Promise<LocalSandboxes> {
  const runtimeDir = sandboxRuntimeDir(config.dataDir);
  const cache = compileCacheDir(runtimeDir);
  const { memoryMb, processes, cpus } = config.sandboxLimits;
  const limits = { memoryBytes: memoryMb * MB, processes, cpus };
  const isolation = config.sandboxIsolation === 'off' ? OFF : await probeIsolation({ limits, cacheDir: cache });
  const { tier, why, cure, programs } = isolation;
  if (config.sandboxIsolation === 'required' && tier === 'none') {
    throw new StartError(`HEPH_SANDBOX_ISOLATION is required, and this machine cannot isolate sandboxes. ${why} ${cure}`);
  }
  if (programs) await fillCompileCache(cache, programs);
  if (tier === 'isolated') log.info('sandboxes are isolated', { tier });
  else log.warn('sandboxes are not fully isolated', { tier, why });
  return { isolation, runtimeDir, compileCacheDir: cache };
}

export interface LocalHostOptions {
  readonly config: Config;
  readonly log: Log;
  readonly sandboxes: LocalSandboxes;
  /** The agent listener, and its address for runners that are not isolated. */
  readonly agent: HttpListener;
  readonly gateway: string;
  /** Hears what runners say of their tool calls. */
  readonly onSaid?: LocalSandboxHostOptions['onSaid'];
}

export function localHost({ config, log, sandboxes, agent, gateway, onSaid }: LocalHostOptions): SandboxHost {
  const { runtimeDir } = sandboxes;
  return new LocalSandboxHost({
    ...{ gateway, runtimeDir, log },
    warmCount: config.sandboxWarm,
    // Warm ones wait beside those that serve a conversation.
    maxRunners: config.sandboxesMax + config.sandboxWarm,
    bash: mayRunCommands(config, sandboxes.isolation),
    isolation: toLocal(config, sandboxes, agent),
    clock: systemClock,
    ...(onSaid ? { onSaid } : {}),
  });
}

function toLocal(config: Config, { isolation, compileCacheDir }: LocalSandboxes, agent: HttpListener): LocalIsolation | null {
  const { programs, limits } = isolation;
  if (programs === null) return null;
  const workBytes = config.sandboxLimits.diskMb * MB;
  return { confinement: { programs, limits, workBytes }, compileCacheDir, openDoor: (path, owner) => openDoor(agent, path, owner) };
}

function mayRunCommands(config: Config, { tier }: Isolation): boolean {
  return tier !== 'none' || config.sandboxAllowUnisolated;
}

/** Nothing stands between a command and what the user of this server may do. */
export function commandsRunAsUs(config: Config, { tier }: Isolation): boolean {
  return tier === 'none' && config.sandboxAllowUnisolated;
}

/** What everybody who uses the page must know about commands here; null when there is nothing. */
export function commandWarning(config: Config, isolation: Isolation): string | null {
  if (isolation.tier !== 'none') return null;
  if (!config.sandboxAllowUnisolated) return `The assistant cannot run commands on this installation. ${isolation.why}`;
  return 'Sandboxes are not isolated on this installation: commands of the assistant run as your user. Use it only on your own machine.';
}

/** For an operator: the tier, why it is not better, and what helps. */
export function isolationNote(config: Config, { tier, why, cure }: Isolation): { warning: string | null; why: string } {
  if (tier === 'isolated') return { warning: null, why: 'isolated: own files, processes and limits, no network but one socket' };
  const bash = tier === 'none' && !config.sandboxAllowUnisolated ? ' Commands are refused; reading works.' : '';
  return { warning: `${tier}: ${why}${bash} ${cure}`.trim(), why: tier };
}
