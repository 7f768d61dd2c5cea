/**
 * Owns: the real server in a process of its own, with one thing replaced: its sandboxes. An assignment goes to the bench, which hands it to
 * the stub runner. Its settings come from the environment, as in production.
 */
import type { RunnerView, SandboxHost } from '../actors/index.ts';
import { readConfig } from '../src/config.ts';
import type { SandboxId } from '../src/kernel/ids.ts';
import { createLog } from '../src/kernel/log.ts';
import { startServer } from '../src/server.ts';
import { serveParent, tellParent } from './support/parent.ts';
import { switchedMetrics } from './support/switched-metrics.ts';

/** A runner that was told to begin. The credential stays on this machine. */
export interface Assignment {
  readonly sandboxId: string;
  readonly conversationId: string;
  readonly credential: string;
}

export interface ServerPorts {
  readonly web: number;
  readonly agent: number;
  readonly ops: number;
}

/** Sandboxes that cost nothing: they begin at once, are idle for ever and end at once. */
class StubHost implements SandboxHost {
  readonly #runners = new Map<SandboxId, RunnerView>();
  #listener: (sandboxId: SandboxId, how: 'asked' | 'crashed') => void = () => {};

  async start({ sandboxId, conversationId, credential }: Parameters<SandboxHost['start']>[0]): Promise<void> {
    this.#runners.set(sandboxId, { sandboxId, state: 'idle', pid: null, startedAt: Date.now() });
    tellParent('assigned', { sandboxId, conversationId, credential } satisfies Assignment);
  }

  async end(sandboxId: SandboxId): Promise<void> {
    if (this.#runners.delete(sandboxId)) this.#listener(sandboxId, 'asked');
  }

  onExit(listener: (sandboxId: SandboxId, how: 'asked' | 'crashed') => void): void {
    this.#listener = listener;
  }

  list(): readonly RunnerView[] {
    return [...this.#runners.values()];
  }

  async drain(): Promise<void> {
    this.#runners.clear();
  }
}

const config = readConfig(process.env, process.cwd());
const observing = switchedMetrics();
const hooks = { sandboxHost: () => new StubHost(), metrics: observing.metrics };
const server = await startServer(config, createLog(config.logLevel), hooks);

const commands = {
  stop: () => server.stop(),
  /** Metrics are on at first. */
  observe: (on: boolean) => observing.set(on),
};
export type ServerCommands = typeof commands;

serveParent(commands, server.ports satisfies ServerPorts);
