/**
 * A real process that posts (outbox-worker.ts), to be killed. Ended by pid.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WorkerTask } from './outbox-worker.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export class OutboxProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(task: WorkerTask) {
    const program = [path.join(root, 'spec/support/outbox-worker.ts'), JSON.stringify(task)];
    this.#child = spawn(path.join(root, 'node_modules/.bin/node'), program, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exited = once(this.#child, 'exit');
  }

  /** Resolves when it posts; rejects when it ends before. */
  static async start(task: WorkerTask): Promise<OutboxProcess> {
    const worker = new OutboxProcess(task);
    const ended = worker.#exited.then(() => Promise.reject(new Error('the process that posts ended before it began')));
    await Promise.race([once(worker.#child.stdout as NodeJS.ReadableStream, 'data'), ended]);
    return worker;
  }

  /** kill -9; resolves when it is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}
