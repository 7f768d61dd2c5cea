/**
 * Owns: sandboxes in the process of the spec. Each is a loop like that of sandbox-runner/serve.ts, without HTTP and Pi: it shows its
 * credential, pulls, reads its context, reports a partial answer, ends its turn, and repeats a call whose reply was lost.
 * Does not own: what a turn does (the spec gives a `TurnScript`).
 */
import { createHash } from 'node:crypto';
import type { Attempt, RunnerView, Runtime, SandboxHost, SandboxIdentity } from '../../actors/index.ts';
import type { Database } from '../../db/pool.ts';
import { findSandbox } from '../../db/web/find-sandbox.ts';
import type { AgentRun, ContextResponse, PiEntry, TurnEndRequest } from '../../src/contract/agent.ts';
import { pause, systemClock } from '../../src/kernel/clock.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { type ConversationId, type RunId, type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';

/** What a stub sandbox does with a run. It returns when it is through with it. */
export type TurnScript = (turn: StubTurn) => Promise<void>;

/** A call is tried again this often; the pauses are those of a driver in a hurry. */
const TRIES_MAX = 400;
const PAUSE_MS = 10;
const PULL_WAIT_MS = 20_000;

/** The sandbox was killed: nothing of it runs on. */
class Killed extends Error {}

export function piAnswer(text: string): PiEntry {
  const message = { role: 'assistant', content: [{ type: 'text', text }] };
  return { type: 'message', id: uuidv7(), parentId: null, timestamp: '2026-01-01T00:00:00.000Z', message };
}

export function done(...texts: readonly string[]): TurnEndRequest {
  return { outcome: 'DONE', entries: texts.map(piAnswer), lastPartial: null };
}

/** Reads the question, says a little, answers. */
export const answerAtOnce: TurnScript = async (turn) => {
  const context = await turn.context();
  if (context === null) return;
  await turn.partial('half of ');
  await turn.end(done(`Answer to ${context.prompt}`));
};

/** One run in the hands of a stub sandbox. Each call throws once the sandbox was killed. */
export class StubTurn {
  readonly run: AgentRun;
  readonly attempt: Attempt;
  readonly runtime: Runtime;
  readonly #sandbox: StubSandbox;

  constructor(sandbox: StubSandbox, runtime: Runtime, [identity, run]: readonly [SandboxIdentity, AgentRun]) {
    this.#sandbox = sandbox;
    this.runtime = runtime;
    this.run = run;
    this.attempt = { sandbox: identity, runId: run.id as RunId, epoch: run.epoch };
  }

  /** null: the turn was stopped (then it is ended here, without words) or the lease is lost. */
  async context(): Promise<ContextResponse | null> {
    const reply = await this.#call(() => this.runtime.readContext(this.attempt));
    if (reply.kind === 'context') return reply.context;
    if (reply.kind === 'stopped') await this.end({ outcome: 'STOPPED', entries: [], lastPartial: null });
    return null;
  }

  partial(text: string, offset = 0) {
    return this.#call(() => this.runtime.publishPartial(this.attempt, { offset, text, stage: null, full: offset === 0 }));
  }

  renew() {
    return this.#call(() => this.runtime.renewLease(this.attempt));
  }

  end(end: TurnEndRequest) {
    return this.#call(() => this.runtime.endTurn(this.attempt, end));
  }

  handOn() {
    return this.#call(() => this.runtime.endRun(this.attempt, { outcome: 'HANDED_ON' }));
  }

  complete() {
    return this.#call(() => this.runtime.endRun(this.attempt, { outcome: 'COMPLETED' }));
  }

  /** The sandbox dies here, in the middle of its turn. */
  die(): never {
    this.#sandbox.kill();
    throw new Killed();
  }

  /** Repeats while the server cannot answer, as a driver does. */
  async #call<T>(send: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      if (this.#sandbox.dead) throw new Killed();
      try {
        const reply = await send();
        if (this.#sandbox.dead) throw new Killed();
        return reply;
      } catch (error) {
        if (!(error instanceof RuntimeFault) || error.retry !== 'later' || tries >= TRIES_MAX) throw error;
        await pause(systemClock, PAUSE_MS);
      }
    }
  }
}

export class StubSandbox {
  readonly id: SandboxId;
  readonly conversationId: ConversationId;
  readonly startedAt = Date.now();
  state: RunnerView['state'] = 'idle';
  readonly #gone = new AbortController();
  readonly #hash: Buffer;
  #how: 'asked' | 'crashed' = 'asked';

  constructor(id: SandboxId, conversationId: ConversationId, credential: string) {
    this.id = id;
    this.conversationId = conversationId;
    this.#hash = createHash('sha256').update(credential).digest();
  }

  get dead(): boolean {
    return this.#gone.signal.aborted;
  }

  kill(): void {
    this.#how = 'crashed';
    this.#gone.abort();
  }

  ask(): void {
    this.#gone.abort();
  }

  /** Serves until it is gone; resolves with how it went. */
  async serve(runtime: Runtime, db: Database, host: Pick<StubSandboxHost, 'script' | 'beforePull'>): Promise<'asked' | 'crashed'> {
    while (!this.dead) {
      try {
        await host.beforePull();
        const identity = await findSandbox(db, this.#hash, null);
        if (identity === null) return 'asked'; // 401
        const run = await runtime.claimNext(identity, PULL_WAIT_MS, this.#gone.signal);
        if (run === null || this.dead) {
          await pause(systemClock, 1, this.#gone.signal); // a server that stops answers at once
          continue;
        }
        this.state = 'busy';
        await host.script(new StubTurn(this, runtime, [identity, run]));
      } catch (error) {
        if (error instanceof Killed) break;
        if (!(error instanceof RuntimeFault)) throw error;
        await pause(systemClock, PAUSE_MS, this.#gone.signal);
      } finally {
        this.state = 'idle';
      }
    }
    return this.#how;
  }
}

export interface StubHostOptions {
  /** How the sandboxes ask who they are: the server's pool, or one of their own. */
  readonly db: Database;
  readonly script: TurnScript;
}

/** A SandboxHost of stub sandboxes. `serveWith` connects it to the server that starts them. */
export class StubSandboxHost implements SandboxHost {
  script: TurnScript;
  /** A spec sets it to keep sandboxes from pulling. */
  beforePull: () => Promise<void> = async () => undefined;
  /** A spec sets it to make starts fail. */
  startFails: () => RuntimeFault | null = () => null;
  /** Conversations in the order in which their sandboxes were started, failed starts included. */
  readonly starts: ConversationId[] = [];
  /** Sandboxes that the server asked to end. */
  readonly ended: SandboxId[] = [];
  readonly #db: Database;
  readonly #running = new Map<StubSandbox, Promise<void>>();
  #runtime: Runtime | undefined;
  #listener: (sandboxId: SandboxId, how: 'asked' | 'crashed') => void = () => undefined;

  constructor(options: StubHostOptions) {
    this.#db = options.db;
    this.script = options.script;
  }

  get sandboxes(): readonly StubSandbox[] {
    return [...this.#running.keys()];
  }

  serveWith(runtime: Runtime): void {
    this.#runtime = runtime;
  }

  async start(request: { sandboxId: SandboxId; conversationId: ConversationId; credential: string }): Promise<void> {
    this.starts.push(request.conversationId);
    const fault = this.startFails();
    if (fault) throw fault;
    const runtime = this.#runtime;
    if (!runtime) throw new Error('the stub host is not connected to a server');
    const sandbox = new StubSandbox(request.sandboxId, request.conversationId, request.credential);
    const life = sandbox.serve(runtime, this.#db, this).then((how) => {
      this.#running.delete(sandbox);
      this.#listener(sandbox.id, how);
    });
    this.#running.set(sandbox, life);
  }

  async end(sandboxId: SandboxId): Promise<void> {
    this.ended.push(sandboxId);
    const sandbox = this.sandboxes.find((one) => one.id === sandboxId);
    sandbox?.ask();
    await (sandbox && this.#running.get(sandbox));
  }

  onExit(listener: (sandboxId: SandboxId, how: 'asked' | 'crashed') => void): void {
    this.#listener = listener;
  }

  list(): readonly RunnerView[] {
    return this.sandboxes.map(({ id, state, startedAt }) => ({ sandboxId: id, state, startedAt, pid: null }));
  }

  async drain(): Promise<void> {
    for (const sandbox of this.sandboxes) sandbox.ask();
    await Promise.all(this.#running.values());
  }
}
