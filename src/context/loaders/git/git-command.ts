/**
 * Owns: running git: the only place of the server that starts a process (spec/decisions/0022).
 * Rules: arguments as a list, never a shell; an environment of our own, so that no setting, hook, credential, pager or proxy of this machine
 * reaches it; only the protocols that are allowed; every run has a signal, a time and an output bound; it ends with its whole process group.
 * Does not own: which commands are run (mirror.ts, snapshot.ts), where a clone URL may lead (clone-url.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import type { Readable } from 'node:stream';

export interface GitSettings {
  /** Name or path of the program. */
  readonly program: string;
  /** PATH, the only variable of this process that git sees. */
  readonly searchPath: string;
  /** Clone URLs may be `file:` (repositories of this machine). */
  readonly allowFile: boolean;
}

export interface GitOptions {
  /** Where it runs. No repository above this folder is looked at. */
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Settings for this run, `name=value`. */
  readonly config?: readonly string[];
  readonly input?: string;
  readonly outputMaxBytes?: number;
}

/** `timeout` and `output`: it was killed because it took too long or said too much. `missing`: there is no such program. */
export interface GitResult {
  readonly how: 'exited' | 'timeout' | 'output' | 'missing';
  /** 128 or more after a fatal error or a signal. */
  readonly code: number;
  readonly stdout: Buffer;
  /** The beginning of what it complained. Never for a log: it repeats names and URLs. */
  readonly stderr: string;
}

/** A run whose output is read while it runs. */
export interface GitStream {
  readonly stdout: Readable;
  /** Rejects with the signal's reason; `stdout` in it is empty. */
  readonly ended: Promise<GitResult>;
}

const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;
const STDERR_MAX_BYTES = 16 * 1024;
/** What only this file says to git, before each command. */
const ALWAYS = [
  ...[
    'protocol.allow=never',
    'protocol.https.allow=always',
    'http.followRedirects=false',
    'http.lowSpeedLimit=1000',
    'http.lowSpeedTime=30',
  ],
  ...['credential.helper=', 'core.askPass=', 'core.hooksPath=/dev/null', 'core.fsmonitor=false', 'core.symlinks=false', 'core.pager=cat'],
  ...['core.protectHFS=true', 'core.protectNTFS=true', 'core.quotePath=false', 'core.attributesFile=/dev/null'],
  ...[
    'submodule.recurse=false',
    'fetch.recurseSubmodules=false',
    'gc.auto=0',
    'maintenance.auto=false',
    'pack.threads=1',
    'index.threads=1',
  ],
  ...['filter.lfs.smudge=', 'filter.lfs.process=', 'filter.lfs.required=false'],
];

export class Git {
  readonly #settings: GitSettings;

  constructor(settings: GitSettings) {
    this.#settings = settings;
  }

  /** Runs to its end. Rejects only with the signal's reason; then the process group is gone or going. */
  async run(args: readonly string[], options: GitOptions): Promise<GitResult> {
    const { outputMaxBytes = OUTPUT_MAX_BYTES } = options;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const child = this.#spawn(args, options);
    const watched = watch(child, options);
    child.stdout?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > outputMaxBytes) watched.kill('output');
      else chunks.push(chunk);
    });
    return { ...(await watched.ended), stdout: Buffer.concat(chunks) };
  }

  /** Starts it, for an output that is larger than memory. Read `stdout` to its end, or abort the signal. */
  stream(args: readonly string[], options: GitOptions): GitStream {
    const child = this.#spawn(args, options);
    const { ended } = watch(child, options);
    ended.catch(() => {}); // whoever reads stdout awaits it later
    return { stdout: child.stdout as Readable, ended };
  }

  #spawn(args: readonly string[], { cwd, config = [], input }: GitOptions): ChildProcess {
    const { program, searchPath, allowFile } = this.#settings;
    const settings = [...ALWAYS, ...(allowFile ? ['protocol.file.allow=always'] : []), ...config];
    const child = spawn(program, [...settings.flatMap((setting) => ['-c', setting]), ...args], {
      cwd,
      env: {
        ...{ PATH: searchPath, HOME: cwd, LANG: 'C', LC_ALL: 'C' },
        ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_SYSTEM: '/dev/null', GIT_CONFIG_GLOBAL: '/dev/null', GIT_ATTR_NOSYSTEM: '1' },
        ...{ GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0', GIT_NO_REPLACE_OBJECTS: '1', GIT_PROTOCOL_FROM_USER: '0' },
        ...{ GIT_CEILING_DIRECTORIES: path.dirname(cwd), GIT_LFS_SKIP_SMUDGE: '1' },
      },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      // A group of its own, so that one signal reaches the helpers that it starts.
      detached: true,
    });
    child.stdin?.on('error', () => {}); // it ended before it read everything; its exit code tells
    child.stdin?.end(input);
    return child;
  }
}

interface Watched {
  readonly ended: Promise<GitResult>;
  kill(how: GitResult['how']): void;
}

function watch(child: ChildProcess, { signal, timeoutMs }: GitOptions): Watched {
  let how: GitResult['how'] = 'exited';
  let stderr = '';
  const kill = (reason: GitResult['how']) => {
    if (how === 'exited') how = reason;
    if (child.pid !== undefined) killGroup(child.pid);
  };
  child.stderr?.on('data', (chunk: Buffer) => {
    if (stderr.length < STDERR_MAX_BYTES) stderr += chunk.toString('utf8');
  });
  const ended = new Promise<GitResult>((resolve, reject) => {
    const onAbort = () => kill('exited');
    const timer = setTimeout(() => kill('timeout'), timeoutMs);
    const done = (code: number) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      if (signal.aborted) reject(signal.reason);
      else resolve({ how, code, stdout: Buffer.alloc(0), stderr });
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    child.once('error', () => {
      how = 'missing';
      done(127);
    });
    child.once('close', (code) => done(code ?? 128));
    // A helper that survives its parent keeps the pipes open.
    child.once('exit', () => child.pid !== undefined && killGroup(child.pid));
  });
  return { ended, kill };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is gone, which is what was wanted.
  }
}
