/**
 * Owns: the runners of this machine: a few warm ones that wait unassigned, one runner per sandbox, never one for two conversations,
 * and the end of all of them. The server sees it through SandboxHost of actors/ports.ts.
 * An isolated runner has one way out: a socket of its own, which serves only the sandbox that the runner was given to.
 * Does not own: which conversation needs a sandbox and when it is idle (SandboxesActor), and how a runner is isolated (isolation/).
 * Limits: maxRunners processes, warm ones included.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { RunnerAssignment } from '../../src/contract/agent.ts';
import { type Clock, pause } from '../../src/kernel/clock.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import type { ConversationId, SandboxId } from '../../src/kernel/ids.ts';
import type { Log } from '../../src/kernel/log.ts';
import { WORKSPACE_DIR } from '../config.ts';
import { removeTree } from '../context-folder.ts';
import { INSIDE } from '../isolation/layers.ts';
import { giveToSandboxUser } from '../isolation/runtime-dir.ts';
import { type Confinement, type RunnerListener, RunnerProcess, type RunnerState } from './runner-process.ts';
import { findSetpriv } from './setpriv.ts';

/** How long a runner may take to become ready, to accept an assignment, and to go when it is asked. */
const READY_MAX_MS = 30_000;
const ACCEPT_MAX_MS = 10_000;
const END_MAX_MS = 5_000;
/** Pause before a warm runner is replaced that was gone before it was ever used: doubles up to the second. */
const RESPAWN_MIN_MS = 250;
const RESPAWN_MAX_MS = 30_000;

export interface LocalSandboxHostOptions {
  /** What each runner is told: `http://127.0.0.1:port` or `unix:/path` of the agent listener. */
  readonly gateway: string;
  /** A folder of this server. Work folders live under it and are removed with their runner; Node's compile cache stays. */
  readonly runtimeDir: string;
  readonly warmCount: number;
  readonly maxRunners: number;
  /** Whether the bash tool may run commands here. */
  readonly bash: boolean;
  /** null: runners are plain processes of this user. */
  readonly isolation?: LocalIsolation | null;
  readonly log: Log;
  readonly clock: Clock;
  /** Hears each log line of each runner. */
  readonly onSaid?: RunnerListener;
}

export interface LocalIsolation {
  readonly confinement: Omit<Confinement, 'name'>;
  readonly compileCacheDir: string;
  /** Serves the agent wire on a socket, to the sandbox that `owner` names (null: to nobody yet). Resolves with what closes it. */
  readonly openDoor: (socketPath: string, owner: () => SandboxId | null) => Promise<() => Promise<void>>;
}

export interface LocalRunnerView {
  readonly sandboxId: SandboxId | null;
  readonly state: RunnerState;
  readonly pid: number | null;
  readonly startedAt: number;
  /** Resident memory; absent where the system does not tell. */
  readonly rssBytes?: number;
}

export interface StartRequest {
  readonly sandboxId: SandboxId;
  readonly conversationId: ConversationId;
  readonly credential: string;
}

type ExitListener = (sandboxId: SandboxId, how: 'asked' | 'crashed') => void;

export class LocalSandboxHost {
  readonly #options: LocalSandboxHostOptions;
  /** Each runner with the promise that all of it is gone. */
  readonly #runners = new Map<RunnerProcess, Promise<void>>();
  /** The sockets of isolated runners. */
  readonly #doors = new Map<RunnerProcess, Promise<() => Promise<void>>>();
  readonly #listeners = new Set<ExitListener>();
  readonly #setprivPath = findSetpriv();
  readonly #swept: Promise<void>;
  #draining = false;
  #failedStarts = 0;

  /** Starts the warm runners at once, and removes what a server that was killed could not. */
  constructor(options: LocalSandboxHostOptions) {
    this.#options = options;
    mkdirSync(options.runtimeDir, { recursive: true, mode: 0o700 });
    this.#swept = this.#sweep();
    this.#keepWarm();
  }

  /**
   * Resolves when a runner has accepted the conversation. Rejects with BUSY when no further runner may be started, DRAINING while the
   * server stops, INTERNAL when the runner is gone before it accepted.
   */
  async start(request: StartRequest): Promise<void> {
    const runner = this.#take(request.sandboxId);
    this.#keepWarm();
    try {
      await this.#within(Promise.all([runner.ready, this.#doors.get(runner)]), READY_MAX_MS);
      runner.assign(this.#assignment(request, runner));
      await this.#within(runner.accepted, ACCEPT_MAX_MS);
    } catch (error) {
      runner.kill();
      throw new RuntimeFault('INTERNAL', 'A sandbox could not be started. Try again in a moment.', { retry: 'later', cause: error });
    }
  }

  /** Asks the runner to hand its run on and go, and kills it when it does not. Resolves when it is gone. */
  async end(sandboxId: SandboxId): Promise<void> {
    const runner = [...this.#runners.keys()].find((candidate) => candidate.sandboxId === sandboxId);
    if (runner !== undefined) await this.#end(runner, END_MAX_MS);
  }

  /** Called once for each sandbox whose runner is gone. */
  onExit(listener: ExitListener): void {
    this.#listeners.add(listener);
  }

  list(): readonly LocalRunnerView[] {
    return [...this.#runners.keys()].map(({ sandboxId, state, pid, startedAt }) => ({
      sandboxId,
      state,
      pid,
      startedAt,
      ...memoryOf(pid),
    }));
  }

  /** Ends every runner: busy ones hand their run on within `graceMs`, what is left then is killed. Nothing starts any more. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    await Promise.all([this.#swept, ...[...this.#runners.keys()].map((runner) => this.#end(runner, graceMs))]);
  }

  /** A runner for this sandbox: a warm one, else one that is starting, else a new one. */
  #take(sandboxId: SandboxId): RunnerProcess {
    if (this.#draining) throw new RuntimeFault('DRAINING', 'The server is stopping. Try again in a moment.', { retry: 'later' });
    const free = this.#unassigned();
    const runner = free.find((candidate) => candidate.state === 'warm') ?? free[0] ?? this.#spawn();
    if (runner === null)
      throw new RuntimeFault('BUSY', 'All sandboxes of this server are taken. Try again in a moment.', { retry: 'later' });
    runner.sandboxId = sandboxId;
    return runner;
  }

  #unassigned(): RunnerProcess[] {
    return [...this.#runners.keys()].filter((runner) => runner.sandboxId === null && runner.state !== 'ending');
  }

  #assignment(request: StartRequest, runner: RunnerProcess): RunnerAssignment {
    const { bash, isolation } = this.#options;
    const { credential, conversationId } = request;
    const gateway = isolation ? `unix:${INSIDE.socket}` : this.#options.gateway;
    return { gateway, bash, credential, conversationId, workDir: isolation ? WORKSPACE_DIR : runner.dir };
  }

  #keepWarm(): void {
    while (!this.#draining && this.#unassigned().length < this.#options.warmCount) {
      if (this.#spawn() === null) return;
    }
  }

  /** A new runner, or null when there are as many as may be. */
  #spawn(): RunnerProcess | null {
    const { runtimeDir, maxRunners, clock, log, onSaid } = this.#options;
    if (this.#runners.size >= maxRunners) return null;
    const dir = mkdtempSync(join(runtimeDir, `w-${process.pid}-`));
    const isolation = this.#options.isolation ?? null;
    if (isolation !== null) giveToSandboxUser(dir);
    const runner = new RunnerProcess({
      dir,
      compileCacheDir: isolation?.compileCacheDir ?? join(runtimeDir, 'compile-cache'),
      setprivPath: this.#setprivPath,
      confinement: isolation && { ...isolation.confinement, name: basename(dir) },
      startedAt: clock.now(),
      log,
      ...(onSaid ? { onSaid } : {}),
    });
    if (isolation !== null) this.#openDoor(runner, isolation);
    this.#runners.set(runner, this.#bury(runner));
    return runner;
  }

  #openDoor(runner: RunnerProcess, { openDoor }: LocalIsolation): void {
    const door = openDoor(join(runner.dir, basename(INSIDE.socket)), () => runner.sandboxId);
    door.catch((error: unknown) => this.#options.log.error('runner_socket_failed', {}, error));
    this.#doors.set(runner, door);
  }

  /** After its end: the sandbox's owner is told, the folder goes, and a warm runner is replaced. */
  async #bury(runner: RunnerProcess): Promise<void> {
    const { how } = await runner.gone;
    const { sandboxId } = runner;
    this.#runners.delete(runner);
    if (sandboxId !== null) this.#tell(sandboxId, how);
    void this.#replace(sandboxId === null && how === 'crashed');
    await this.#doors.get(runner)?.then(
      (close) => close(),
      () => undefined,
    );
    this.#doors.delete(runner);
    await this.#remove(runner.dir);
  }

  /** Work folders of servers that are gone: they hold documents of people. */
  async #sweep(): Promise<void> {
    const { runtimeDir } = this.#options;
    for (const name of readdirSync(runtimeDir)) {
      const owner = /^w-(\d+)-/.exec(name)?.[1];
      if (owner !== undefined && !isAlive(Number(owner))) await this.#remove(join(runtimeDir, name));
    }
  }

  async #remove(workDir: string): Promise<void> {
    await removeTree(workDir).catch((error: unknown) => this.#options.log.error('runner_folder_left', {}, error));
  }

  #tell(sandboxId: SandboxId, how: 'asked' | 'crashed'): void {
    for (const listener of this.#listeners) {
      try {
        listener(sandboxId, how);
      } catch (error) {
        this.#options.log.error('runner_listener_failed', { sandboxId }, error);
      }
    }
  }

  /** `failed`: it was gone before it was used, so the next one would probably fail at once. */
  async #replace(failed: boolean): Promise<void> {
    this.#failedStarts = failed ? this.#failedStarts + 1 : 0;
    if (failed) await pause(this.#options.clock, Math.min(RESPAWN_MAX_MS, RESPAWN_MIN_MS * 2 ** this.#failedStarts));
    this.#keepWarm();
  }

  async #end(runner: RunnerProcess, graceMs: number): Promise<void> {
    const buried = this.#runners.get(runner);
    runner.drain();
    await this.#within(runner.gone, graceMs).catch(() => runner.kill());
    await buried;
  }

  async #within<T>(work: Promise<T>, limitMs: number): Promise<T> {
    const late = new AbortController();
    const limit = pause(this.#options.clock, limitMs, late.signal).then(() => Promise.reject(new Error('a runner took too long')));
    try {
      return await Promise.race([work, limit]);
    } finally {
      limit.catch(() => undefined);
      late.abort();
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code === 'EPERM';
  }
}

/** Of the process and what it started: an isolated runner is a child of its layer. Linux tells; elsewhere nothing is said. */
function memoryOf(pid: number | null): { rssBytes?: number } {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    if (kibibytes === undefined) return {};
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    const theirs = children.reduce((sum, child) => sum + (memoryOf(Number(child)).rssBytes ?? 0), 0);
    return { rssBytes: Number(kibibytes) * 1024 + theirs };
  } catch {
    return {};
  }
}
