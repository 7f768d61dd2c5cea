/**
 * Owns: one command as a process: an empty environment, its own process group, a time limit, a bounded output, and an end that takes
 * the whole group with it.
 * In an isolated runner each command gets a layer of its own (isolation/layers.ts), which ends with it and takes everything along.
 * Does not own: who may run commands (bash.ts). A descendant that leaves its group (setsid) survives where nothing is isolated.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { RUNNER } from '../config.ts';
import { TOOL_FDS, toolLayer } from '../isolation/layers.ts';

/** The only environment that a command sees besides HOME. */
const COMMAND_PATH = '/usr/local/bin:/usr/bin:/bin';
const COMMAND_LANG = 'C.UTF-8';

export interface CommandOptions {
  readonly command: string;
  readonly cwd: string;
  readonly timeoutMs: number;
  readonly setprivPath: string | null;
  readonly signal: AbortSignal;
}

export interface CommandResult {
  readonly how: 'exited' | 'timeout' | 'output' | 'aborted' | 'failed';
  readonly exitCode: number;
  readonly timeoutMs: number;
  /** The end of stdout and stderr together. */
  readonly tail: string;
  readonly tailBytes: number;
  /** All that was printed. */
  readonly outputBytes: number;
}

const groups = new Set<number>();
/** Decided once for the process, before the first command. */
let toolFilter: string | null = null;

/** From now on each command runs in a layer of its own. `filter`: the file of its system call filter. */
export function confineCommands(filter: string): void {
  toolFilter = filter;
}

/** Kills every command that still runs. For the last moment of the process: it does not wait. */
export function killCommands(): void {
  for (const group of groups) killGroup(group);
}

/** Runs one command to its end. Never throws. */
export async function runCommand(options: CommandOptions): Promise<CommandResult> {
  const output = new Tail();
  let how: CommandResult['how'] = 'exited';
  const child = start(options);
  const stop = (reason: CommandResult['how']): void => {
    if (how === 'exited') how = reason;
    if (child.pid !== undefined) killGroup(child.pid);
  };
  const take = (chunk: Buffer): void => {
    output.add(chunk);
    if (output.bytes > RUNNER.bashOutputMaxBytes) stop('output');
  };
  child.stdout?.on('data', take);
  child.stderr?.on('data', take);
  const timer = setTimeout(() => stop('timeout'), options.timeoutMs);
  const onAbort = (): void => stop('aborted');
  options.signal.addEventListener('abort', onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  const exitCode = await ended(child);
  clearTimeout(timer);
  options.signal.removeEventListener('abort', onAbort);
  if (exitCode === null) how = 'failed';
  return {
    how,
    exitCode: exitCode ?? 0,
    timeoutMs: options.timeoutMs,
    tail: output.text(),
    tailBytes: output.tailBytes,
    outputBytes: output.bytes,
  };
}

function start(options: CommandOptions): ChildProcess {
  const bash = ['bash', '--norc', '--noprofile', '-c', options.command];
  const child = toolFilter === null ? startPlain(bash, options) : startConfined(bash, toolFilter);
  if (child.pid !== undefined) groups.add(child.pid);
  return child;
}

/** A group of its own, so that one signal reaches all of it. */
const OWN_GROUP: SpawnOptions = { detached: true };

function startPlain(command: readonly string[], { cwd, setprivPath }: CommandOptions): ChildProcess {
  const [file = '', ...args] = setprivPath === null ? command : [setprivPath, '--pdeathsig=KILL', ...command];
  return spawn(file, args, {
    ...OWN_GROUP,
    cwd,
    env: { PATH: COMMAND_PATH, HOME: cwd, LANG: COMMAND_LANG },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function startConfined(command: readonly string[], filterPath: string): ChildProcess {
  const filter = openSync(filterPath, 'r');
  try {
    const [file = '', ...args] = toolLayer(command);
    const stdio: ('ignore' | 'pipe' | number)[] = ['ignore', 'pipe', 'pipe'];
    stdio[TOOL_FDS.filter] = filter;
    return spawn(file, args, { ...OWN_GROUP, env: { PATH: COMMAND_PATH }, stdio });
  } finally {
    closeSync(filter);
  }
}

/** Its exit code (128 + signal as shells count it), or null when it could not be started. Background processes are killed. */
function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(null));
    child.once('exit', (code, signal) => {
      const { pid } = child;
      if (pid !== undefined) {
        killGroup(pid);
        groups.delete(pid);
      }
      const done = (): void => {
        clearTimeout(timer);
        child.stdout?.destroy();
        child.stderr?.destroy();
        resolve(code ?? (signal === 'SIGKILL' ? 137 : 143));
      };
      const timer = setTimeout(done, RUNNER.bashPipesMaxMs);
      child.once('close', done);
    });
  });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is gone, which is what was wanted.
  }
}

/** The last bytes of a stream that may be endless. */
class Tail {
  bytes = 0;
  tailBytes = 0;
  #chunks: Buffer[] = [];

  add(chunk: Buffer): void {
    this.bytes += chunk.length;
    this.tailBytes += chunk.length;
    this.#chunks.push(chunk);
    if (this.tailBytes <= 2 * RUNNER.bashTailBytes) return;
    const tail = Buffer.from(Buffer.concat(this.#chunks).subarray(-RUNNER.bashTailBytes));
    this.#chunks = [tail];
    this.tailBytes = tail.length;
  }

  /** Decoded; a character that the cut went through is left out. */
  text(): string {
    const all = Buffer.concat(this.#chunks);
    let from = 0;
    if (this.bytes > this.tailBytes) while (from < 4 && ((all[from] ?? 0) & 0xc0) === 0x80) from++;
    return all.subarray(from).toString('utf8');
  }
}
