/**
 * Owns: a process of the bench: starting it, asking it, ending it. Whatever it prints goes to a file, and its tail is shown when it fails.
 * Does not own: what the child does (parent.ts is its side of the talk).
 */
import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Commands, ToChild, ToParent, Usage } from './parent.ts';

export interface ChildOptions {
  /** File in bench/, without its ending. */
  readonly name: string;
  /** Folder for what the child prints. */
  readonly logDir: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly execArgv?: readonly string[];
}

const END_WITHIN_MS = 30_000;
const TAIL_CHARS = 2_000;

type Waiting = { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void };
type Answer<C extends Commands, K extends keyof C> = Promise<Awaited<ReturnType<C[K]>>>;

export class Child<C extends Commands, Greeting = null> {
  readonly #process: ChildProcess;
  readonly #logFile: string;
  readonly #name: string;
  readonly #waiting = new Map<number, Waiting>();
  readonly #events = new EventEmitter();
  #lastId = 0;
  #greeting: Greeting | undefined;
  #ending = false;

  private constructor({ name, logDir, env = {}, execArgv = [] }: ChildOptions) {
    this.#name = name;
    this.#logFile = path.join(logDir, `${name}.log`);
    const log = openSync(this.#logFile, 'a');
    const inherited = Object.entries(process.env).filter(([key]) => !key.startsWith('HEPH_'));
    this.#process = fork(fileURLToPath(new URL(`../${name}.ts`, import.meta.url)), [], {
      env: { ...Object.fromEntries(inherited), ...env },
      execArgv: [...execArgv],
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    this.#process.on('message', (message: ToParent) => this.#hear(message));
    this.#process.once('exit', (code, signal) => this.#gone(`ended (${code ?? signal})`));
    this.#process.once('error', (error) => this.#gone(error.message));
  }

  /** Resolves when the child is ready; rejects with its last words when it ends before. */
  static async start<C extends Commands, Greeting = null>(options: ChildOptions): Promise<Child<C, Greeting>> {
    const child = new Child<C, Greeting>(options);
    child.#greeting = (await new Promise<unknown>((resolve, reject) => {
      child.#waiting.set(0, { resolve, reject });
      child.#events.once('ready', resolve);
    })) as Greeting;
    child.#waiting.delete(0);
    return child;
  }

  /** What the child said when it was ready. */
  get greeting(): Greeting {
    return this.#greeting as Greeting;
  }

  on(event: string, listener: (value: never) => void): void {
    this.#events.on(event, listener as (value: unknown) => void);
  }

  ask<K extends keyof C & string>(command: K, ...argument: Parameters<C[K]>): Answer<C, K> {
    return this.#send(command, argument[0]) as Answer<C, K>;
  }

  usage(): Promise<Usage> {
    return this.#send('usage', null) as Promise<Usage>;
  }

  #send(command: string, argument: unknown): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#process.send({ id, command, argument: argument ?? null } satisfies ToChild, (error) => error && reject(error));
    });
  }

  #hear(message: ToParent): void {
    if ('event' in message) {
      this.#events.emit(message.event, message.value);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if ('error' in message) waiting?.reject(new Error(`${this.#name}: ${message.error}`));
    else waiting?.resolve(message.value);
  }

  #gone(how: string): void {
    const error = new Error(`${this.#name} ${how}:\n${readFileSync(this.#logFile, 'utf8').slice(-TAIL_CHARS)}`);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    if (!this.#ending) this.#events.emit('died', error);
  }

  /** Asks the child to end with its command `stop`, if it has one, and by force after a while. */
  async end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#ending = true;
    const exited = once(this.#process, 'exit');
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), END_WITHIN_MS);
    await this.#send('stop', null).catch(() => {}); // it may be gone before it answers
    if (this.#process.connected) this.#process.disconnect();
    await exited;
    clearTimeout(timer);
  }
}
