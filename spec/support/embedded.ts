/**
 * Owns: hosts (processes that stand for a Heph server), scratch directories and waiting, for the specs of the embedded PostgreSQL.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import pg from 'pg';

export type Answer = { event: string; url: string; pid: number; name: string; message: string; won: number[] };
export type User = { uid: number; gid: number };

const HOST = fileURLToPath(new URL('./embedded-host.ts', import.meta.url));
export const isRoot = process.getuid?.() === 0;
/** The unprivileged user of the specs: nobody if we are root, else ourselves. */
export const ordinary: User | undefined = isRoot ? nobody() : undefined;

function nobody(): User {
  const [, , uid, gid] = /^nobody:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[0].split(':') ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

const scratchDirs: string[] = [];
/** A new directory that every user may enter and `user` owns. */
export function scratch(user?: User): string {
  const dir = mkdtempSync(join(tmpdir(), 'heph-embedded-'));
  scratchDirs.push(dir);
  chmodSync(dir, 0o755);
  if (user) chownSync(dir, user.uid, user.gid);
  return dir;
}

export class Host {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;

  private constructor(user: User | undefined, env: Record<string, string>) {
    // A group of its own, so that a Ctrl-C can be sent to that group only.
    const options = { ...user, env: { ...process.env, ...env }, detached: true };
    this.#child = spawn(process.execPath, [HOST], { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    this.#ended = once(this.#child, 'exit');
  }

  static async spawn(user?: User, env: Record<string, string> = {}): Promise<Host> {
    const host = new Host(user, env);
    hosts.push(host);
    expect(await host.answer()).to.include({ event: 'up' });
    return host;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  async answer(): Promise<Answer> {
    const { value, done } = await this.#answers.next();
    if (done) throw new Error('the host ended without an answer');
    return JSON.parse(value) as Answer;
  }

  tell(command: string): void {
    this.#child.stdin?.write(`${command}\n`);
  }

  ask(command: string): Promise<Answer> {
    this.tell(command);
    return this.answer();
  }

  /** Starts PostgreSQL, which must succeed. */
  async start(dataDir: string): Promise<Answer> {
    const answer = await this.ask(`start ${dataDir}`);
    expect(answer.event, answer.message).to.equal('started');
    return answer;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  /** Ctrl-C as a terminal sends it: to the whole process group. */
  interruptGroup(): void {
    process.kill(-this.pid, 'SIGINT');
  }

  async end(): Promise<void> {
    this.#child.stdin?.end();
    await this.#ended;
  }
}

let hosts: Host[] = [];

/** Resolves once `holds()`; looks again at each change in `dir`. */
export async function changed(dir: string, holds: () => boolean): Promise<void> {
  const done = new AbortController();
  try {
    const changes = watch(dir, { signal: done.signal })[Symbol.asyncIterator]();
    let change = changes.next();
    while (!holds()) {
      await change;
      change = changes.next();
    }
    change.catch(() => undefined);
  } finally {
    done.abort();
  }
}

export async function query(url: string, text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

export async function refusal(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it was not refused');
}

export const logText = (dataDir: string) => readFileSync(join(dataDir, 'postgres.log'), 'utf8');
export const pidFile = (dataDir: string) => join(dataDir, 'postgres', 'postmaster.pid');

/** Registers mocha hooks in the surrounding `describe`: no host outlives its test, no scratch directory outlives the suite. */
export function useHosts(): void {
  afterEach(async () => {
    const ending = hosts;
    hosts = [];
    await Promise.all(ending.map((host) => host.end()));
  });
  after(() => {
    for (const dir of scratchDirs.splice(0)) rmSync(dir, { recursive: true, force: true });
  });
}
