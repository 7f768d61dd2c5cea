/**
 * Owns: one runner as the server sees it: a child process with its own folder, what it reports, and its end.
 * Does not own: which conversation gets which runner (local.ts).
 * A credential goes to the child's standard input only. What the child prints to stderr is counted and dropped: it may hold words.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type RunnerAssignment, type RunnerCommand, type RunnerReport, runnerReportSchema } from '../../src/contract/agent.ts';
import type { SandboxId } from '../../src/kernel/ids.ts';
import type { Log } from '../../src/kernel/log.ts';
import { type Launched, type LaunchOptions, launch } from '../isolation/launch.ts';
import { INSIDE } from '../isolation/layers.ts';

const DRIVER = join(import.meta.dirname, '../driver.ts');
/** A turn holds its path, its documents and Pi; more than this is a leak. */
const HEAP_MAX_MB = 512;
/** Half of V8's own choice is young garbage; this saves 30 MB a runner and costs no time that can be measured. */
const YOUNG_HEAP_MB = 4;

export type RunnerState = 'starting' | 'warm' | 'idle' | 'busy' | 'ending';

export interface RunnerProcessOptions {
  /** The runner's folder on this machine: where it works, or, isolated, where its socket is. */
  readonly dir: string;
  readonly compileCacheDir: string;
  readonly setprivPath: string | null;
  /** null: nothing is isolated. */
  readonly confinement: Confinement | null;
  readonly startedAt: number;
  readonly log: Log;
  /** Hears each log line of the runner, too. It comes from a sandbox. */
  readonly onSaid?: RunnerListener;
}

export type RunnerListener = (event: string, fields: Extract<RunnerReport, { type: 'log' }>['fields']) => void;

/** What makes the runner's layer. */
export type Confinement = Pick<LaunchOptions, 'programs' | 'limits' | 'workBytes' | 'name'>;

export class RunnerProcess {
  readonly dir: string;
  readonly startedAt: number;
  /** The sandbox that this runner was given to; set once, before the runner knows. */
  sandboxId: SandboxId | null = null;
  state: RunnerState = 'starting';
  /** Whether the runner's end was asked for. */
  asked = false;
  /** Resolves with the first report of each kind; rejects when the runner is gone first. */
  readonly ready: Promise<void>;
  readonly accepted: Promise<void>;
  /** Resolves when the process is gone. */
  readonly gone: Promise<{ readonly how: 'asked' | 'crashed' }>;
  readonly #child: ChildProcess;
  readonly #cleanUp: () => Promise<void>;
  readonly #log: Log;
  readonly #onSaid: RunnerListener | undefined;
  readonly #heard = { ready: Promise.withResolvers<void>(), idle: Promise.withResolvers<void>() };
  #stderrBytes = 0;

  constructor(options: RunnerProcessOptions) {
    this.dir = options.dir;
    this.startedAt = options.startedAt;
    this.#log = options.log;
    this.#onSaid = options.onSaid;
    const { child, cleanUp } = start(options);
    this.#child = child;
    this.#cleanUp = cleanUp;
    this.ready = this.#heard.ready.promise;
    this.accepted = this.#heard.idle.promise;
    for (const promise of [this.ready, this.accepted]) promise.catch(() => undefined);
    this.gone = this.#watchEnd();
    this.#listen();
  }

  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  /** Hands the one conversation over. `accepted` says when the runner has taken it. */
  assign(assignment: RunnerAssignment): void {
    this.#write(assignment);
  }

  /** Asks the runner to hand its run on and go. */
  drain(): void {
    this.asked = true;
    this.state = 'ending';
    this.#write({ type: 'drain' });
  }

  kill(): void {
    this.asked = true;
    this.state = 'ending';
    this.#child.kill('SIGKILL');
  }

  #write(line: RunnerAssignment | RunnerCommand): void {
    this.#child.stdin?.write(`${JSON.stringify(line)}\n`);
  }

  async #watchEnd(): Promise<{ readonly how: 'asked' | 'crashed' }> {
    const code = await Promise.race([
      once(this.#child, 'exit').then(([exitCode]) => exitCode as number | null),
      once(this.#child, 'error').then(() => null),
    ]).catch(() => null);
    await this.#cleanUp();
    const ended = new Error('the runner is gone');
    this.#heard.ready.reject(ended);
    this.#heard.idle.reject(ended);
    // Exit code 0 is a runner that went by itself: its credential is no longer accepted.
    const how = this.asked || code === 0 ? 'asked' : 'crashed';
    const fields = { sandboxId: this.sandboxId, pid: this.pid, code, how, stderrBytes: this.#stderrBytes };
    if (how === 'asked') this.#log.debug('runner_gone', fields);
    else this.#log.warn('runner_gone', fields);
    return { how };
  }

  #listen(): void {
    const { stdin, stdout, stderr } = this.#child;
    // A runner that is gone cannot read; its exit is what counts.
    stdin?.on('error', () => undefined);
    stderr?.on('data', (chunk: Buffer) => {
      this.#stderrBytes += chunk.length;
    });
    if (stdout !== null) createInterface({ input: stdout }).on('line', (line) => this.#hear(line));
  }

  #hear(line: string): void {
    const report = parseReport(line);
    if (report === null) {
      this.#log.warn('runner_report_unreadable', { sandboxId: this.sandboxId, pid: this.pid });
      return;
    }
    if (report.type === 'log') {
      this.#log[report.level](report.event, { ...report.fields, sandboxId: this.sandboxId });
      this.#onSaid?.(report.event, report.fields);
    } else if (report.type === 'ready') this.#heard.ready.resolve();
    else if (report.type === 'idle') this.#heard.idle.resolve();
    if (report.type !== 'log' && this.state !== 'ending') this.state = report.type === 'ready' ? 'warm' : report.type;
  }
}

function start(options: RunnerProcessOptions): Launched {
  const { compileCacheDir, confinement, dir, setprivPath } = options;
  const flags = [`--max-old-space-size=${HEAP_MAX_MB}`, `--max-semi-space-size=${YOUNG_HEAP_MB}`];
  if (confinement !== null) {
    const inside = ['--compile-cache', INSIDE.cache, '--tool-filter', INSIDE.toolFilter];
    const command = [`${INSIDE.node}/node`, ...flags, `${INSIDE.project}/sandbox-runner/driver.ts`, ...inside];
    return launch({ ...confinement, cache: { dir: compileCacheDir, writable: false }, gatewayDir: dir }, command);
  }
  const own = setprivPath === null ? [] : ['--setpriv', setprivPath];
  const node = [process.execPath, ...flags, DRIVER, '--compile-cache', compileCacheDir, ...own];
  // The kernel kills the child when its parent dies, however it dies.
  const [file = '', ...args] = setprivPath === null ? node : [setprivPath, '--pdeathsig=KILL', ...node];
  const child = spawn(file, args, { cwd: dir, env: { PATH: RUNNER_PATH }, stdio: ['pipe', 'pipe', 'pipe'], detached: false });
  return { child, cleanUp: async () => undefined };
}

/** Enough for setpriv; the runner reads nothing of its environment. */
const RUNNER_PATH = '/usr/local/bin:/usr/bin:/bin';

function parseReport(line: string): RunnerReport | null {
  try {
    const report = runnerReportSchema.safeParse(JSON.parse(line));
    return report.success ? report.data : null;
  } catch {
    return null;
  }
}
