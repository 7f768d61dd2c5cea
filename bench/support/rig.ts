/**
 * Owns: the processes of a bench and their order: PostgreSQL, provider, server, runner, people. Each has its own process, except the people,
 * who are this one.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { BenchRows } from '../../db/bench/rows.ts';
import type { Assignment, ServerCommands, ServerPorts } from '../server-child.ts';
import type { ProviderCommands } from '../stub-provider-child.ts';
import type { RunnerCommands } from '../stub-runner-child.ts';
import { Child, type ChildOptions } from './child.ts';
import { type Commands, usage } from './parent.ts';
import { People } from './people.ts';
import { type BenchPostgres, startPostgres } from './postgres.ts';

/** Slots of the server: more than any load asks for at once, so that nobody waits for one. */
const CAPACITY_TURNS = 64;

/** CPU time since each process began, milliseconds. `postgres`: null where it cannot be seen. `machine`: all cores, whoever used them. */
export interface CpuTimes {
  readonly machine: number;
  readonly server: number;
  readonly postgres: number | null;
  readonly runner: number;
  readonly provider: number;
  readonly people: number;
}

export interface RigOptions {
  /** Folder for a CPU profile of the server, or null. */
  readonly profileDir: string | null;
}

interface Parts {
  /** For what the children print and for the server's data directory. */
  readonly scratchDir: string;
  readonly postgres: BenchPostgres;
  readonly rows: BenchRows;
  readonly provider: Child<ProviderCommands, { readonly port: number }>;
  readonly runner: Child<RunnerCommands>;
  readonly server: Child<ServerCommands, ServerPorts>;
  readonly people: People;
}

/** What has been started, to be stopped in the reverse order. */
class Started {
  readonly #stops: (() => unknown)[] = [];

  add<T>(part: T, stop: (part: T) => unknown): T {
    this.#stops.push(() => stop(part));
    return part;
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop();
  }
}

export class Rig {
  readonly parts: Parts;
  /** Rejects as soon as a part of the bench fails by itself; never resolves. */
  readonly failed: Promise<never>;
  readonly #started: Started;

  private constructor(parts: Parts, started: Started) {
    this.parts = parts;
    this.#started = started;
    const { server, runner, provider } = parts;
    this.failed = new Promise<never>((_resolve, reject) => {
      for (const child of [server, runner, provider]) child.on('died', (error: Error) => reject(error));
      runner.on('failed', (why: string) => reject(new Error(`the stub runner failed: ${why}`)));
    });
    this.failed.catch(() => {}); // whoever waits for a load hears it
    server.on('assigned', (assignment: Assignment) => void runner.ask('assign', assignment).catch(() => {})); // it ends
  }

  static async start(options: RigOptions): Promise<Rig> {
    const started = new Started();
    try {
      const rig = new Rig(await startParts(started, options), started);
      await rig.setModelCalls(1);
      return rig;
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  /** Model calls of each turn from now on; 1 at first. */
  async setModelCalls(modelCalls: number): Promise<void> {
    const { runner, server } = this.parts;
    await runner.ask('set', { gateway: `http://127.0.0.1:${server.greeting.agent}`, modelCalls });
  }

  async cpuTimes(): Promise<CpuTimes> {
    const { server, runner, provider, postgres } = this.parts;
    const [atServer, atRunner, atProvider] = await Promise.all([server.usage(), runner.usage(), provider.usage()]);
    const cpu = { server: atServer.cpuMs, runner: atRunner.cpuMs, provider: atProvider.cpuMs, people: usage().cpuMs };
    const machine = cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);
    return { ...cpu, machine, postgres: postgres.cpuMs() };
  }

  stop(): Promise<void> {
    return this.#started.stop();
  }
}

async function startParts(started: Started, { profileDir }: RigOptions): Promise<Parts> {
  const scratchDir = started.add(mkdtempSync(path.join(tmpdir(), 'heph-bench-')), (dir) => rmSync(dir, { recursive: true, force: true }));
  const postgres = started.add(await startPostgres(), (one) => one.stop());
  const rows = started.add(await BenchRows.open(postgres.url), (one) => one.close());
  const startChild = async <C extends Commands, Greeting>(name: string, more: Partial<ChildOptions> = {}): Promise<Child<C, Greeting>> =>
    started.add(await Child.start<C, Greeting>({ ...more, name, logDir: scratchDir }), (child) => child.end());
  const provider = await startChild<ProviderCommands, { readonly port: number }>('stub-provider-child');
  const env = serverEnv({ scratchDir, databaseUrl: postgres.url, providerPort: provider.greeting.port });
  const execArgv = profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  const server = await startChild<ServerCommands, ServerPorts>('server-child', { env, execArgv });
  const runner = await startChild<RunnerCommands, null>('stub-runner-child');
  const people = started.add(await People.connect(server.greeting.web), (one) => one.close());
  return { scratchDir, postgres, rows, provider, runner, server, people };
}

/** Everything that is not named here has its default. */
function serverEnv(at: { scratchDir: string; databaseUrl: string; providerPort: number }): Record<string, string> {
  return {
    HEPH_PORT: '0',
    HEPH_AGENT_PORT: '0',
    HEPH_OPS_PORT: '0',
    HEPH_DATABASE_URL: at.databaseUrl,
    HEPH_DATA_DIR: path.join(at.scratchDir, 'server'),
    HEPH_LLM_API: 'openai-completions',
    HEPH_LLM_BASE_URL: `http://127.0.0.1:${at.providerPort}/v1`,
    HEPH_LLM_MODEL: 'bench',
    HEPH_AGENT_CAPACITY_TURNS: String(CAPACITY_TURNS),
    HEPH_SANDBOX_MAX: '1000',
    HEPH_SANDBOX_IDLE: '1d',
  };
}
