/**
 * Owns: what runs in the pods of the fake cluster: the real runner as a process of this machine, or something that only takes assignments.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { RunnerAssignment } from '../../src/contract/agent.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface RunningPod {
  /** Resolves when it is ready for its assignment. */
  readonly ready: Promise<void>;
  /** Resolves with how it ended. */
  readonly ended: Promise<'Succeeded' | 'Failed'>;
  /** What `exec` runs in it gets this line, and prints the answer. */
  exec(command: readonly string[], line: string): Promise<{ code: number; out: string }>;
  /** `gracefully`: SIGTERM, as when a pod is deleted. */
  end(how: 'gracefully' | 'at once'): Promise<void>;
}

export type PodMaker = () => RunningPod;

/** Takes one assignment, as a runner does. */
export class StubPod implements RunningPod {
  readonly ready = Promise.resolve();
  readonly ended: Promise<'Succeeded' | 'Failed'>;
  readonly lines: string[] = [];
  readonly #over = Promise.withResolvers<'Succeeded' | 'Failed'>();

  constructor() {
    this.ended = this.#over.promise;
  }

  get assignment(): RunnerAssignment | null {
    return this.lines[0] === undefined ? null : JSON.parse(this.lines[0]);
  }

  async exec(_command: readonly string[], line: string): Promise<{ code: number; out: string }> {
    const accepted = this.lines.length === 0 || this.lines[0] === line;
    this.lines.push(line);
    return { code: 0, out: `${JSON.stringify({ accepted })}\n` };
  }

  async end(how: 'gracefully' | 'at once'): Promise<void> {
    this.#over.resolve(how === 'gracefully' ? 'Succeeded' : 'Failed');
  }
}

/** The real runner with its socket, and the real program that brings the assignment to it. What a pod mounts at its own places is here in a folder. */
export class RunnerPod implements RunningPod {
  readonly ready: Promise<void>;
  readonly ended: Promise<'Succeeded' | 'Failed'>;
  readonly #dir = mkdtempSync(path.join(tmpdir(), 'heph-pod-'));
  readonly #child: ChildProcess;

  constructor() {
    const socket = this.#inside('/run/heph/assignment.sock');
    const cache = path.join(tmpdir(), 'heph-pod-cache');
    this.#child = spawn(process.execPath, ['sandbox-runner/driver.ts', '--socket', socket, '--compile-cache', cache], {
      cwd: root,
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.ready.catch(() => undefined); // a pod that dies while it starts
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (line === '{"type":"ready"}') ready.resolve();
    });
    this.ended = once(this.#child, 'exit').then(([code]) => {
      ready.reject(new Error('the runner ended'));
      rmSync(this.#dir, { recursive: true, force: true });
      return code === 0 ? 'Succeeded' : 'Failed';
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  async exec(command: readonly string[], line: string): Promise<{ code: number; out: string }> {
    const [program, ...args] = command;
    const child = spawn(
      program === 'node' ? process.execPath : String(program),
      args.map((arg) => this.#inside(arg)),
      {
        cwd: root,
        env: { PATH: process.env['PATH'] },
        stdio: ['pipe', 'pipe', 'ignore'],
      },
    );
    let out = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      out += chunk.toString('utf8');
    });
    child.stdin?.write(`${JSON.stringify({ ...JSON.parse(line), workDir: this.#dir })}\n`); // and stays open, as over exec
    const [code] = await once(child, 'close');
    return { code: Number(code ?? 1), out };
  }

  async end(how: 'gracefully' | 'at once'): Promise<void> {
    this.#child.kill(how === 'gracefully' ? 'SIGTERM' : 'SIGKILL');
    await this.ended;
  }

  #inside(file: string): string {
    return file.startsWith('/run/heph/') ? path.join(this.#dir, path.basename(file)) : file;
  }
}
