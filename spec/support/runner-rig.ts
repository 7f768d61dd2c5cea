/**
 * Owns: real runners for specs: a scripted agent listener, local hosts in a temporary folder, and their end.
 * Does not own: what the listener answers (fake-agent-server.ts).
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalSandboxHost, type LocalSandboxHostOptions } from '../../sandbox-runner/host/local.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { FakeAgentServer } from './fake-agent-server.ts';

const DRAIN_MAX_MS = 2_000;

export interface OwnRunner {
  readonly server: FakeAgentServer;
  readonly host: LocalSandboxHost;
  readonly sandboxId: SandboxId;
}

export class RunnerRig {
  readonly runtimeDir = mkdtempSync(join(tmpdir(), 'heph-'));
  readonly #hosts: LocalSandboxHost[] = [];
  readonly #servers: FakeAgentServer[] = [];

  async openServer(at: { readonly socketPath?: string } = {}): Promise<FakeAgentServer> {
    const server = await FakeAgentServer.start(at);
    this.#servers.push(server);
    return server;
  }

  openHost(options: Partial<LocalSandboxHostOptions> & { readonly gateway: string }): LocalSandboxHost {
    const defaults = { runtimeDir: this.runtimeDir, warmCount: 0, maxRunners: 2, bash: true, log: silentLog, clock: systemClock };
    const host = new LocalSandboxHost({ ...defaults, ...options });
    this.#hosts.push(host);
    return host;
  }

  /** A listener, a host and an assigned runner that nobody else uses. */
  async openRunner(options: Partial<LocalSandboxHostOptions> = {}, at: { readonly socketPath?: string } = {}): Promise<OwnRunner> {
    const server = await this.openServer(at);
    const host = this.openHost({ gateway: server.gateway, ...options });
    return { server, host, sandboxId: await startRunner(host) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.drain(DRAIN_MAX_MS)));
    await Promise.all(this.#servers.map((server) => server.stop()));
    rmSync(this.runtimeDir, { recursive: true });
  }
}

/** Gives a new conversation to a runner of the host. */
export async function startRunner(host: LocalSandboxHost, credential = 'the-credential'): Promise<SandboxId> {
  const sandboxId = uuidv7<'sandbox'>();
  await host.start({ sandboxId, conversationId: uuidv7(), credential });
  return sandboxId;
}

/** Waits until a process is gone, or dead and not yet collected by its parent. */
export async function processGone(pid: number): Promise<void> {
  const isAlive = (): boolean => {
    try {
      process.kill(pid, 0);
      return process.platform !== 'linux' || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  };
  while (isAlive()) await new Promise((resolve) => setImmediate(resolve));
}
