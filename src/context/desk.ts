/**
 * Owns: what an attempt asks for while it runs: an item document, and the load of a heavy item. Each call is fenced like the other calls of
 * a run, judged anew for its account, and a load ends with its client, its attempt or its deadline, whichever comes first.
 * Does not own: what is read or loaded (registry.ts), HTTP. rule: R5
 */
import type { Readable } from 'node:stream';
import type { Attempt, Refusal } from '../../actors/index.ts';
import { countLoad } from '../../db/context/count-load.ts';
import { readContextRequest } from '../../db/context/read-request.ts';
import { type AttemptKey, checkAttempt } from '../../db/ledger/fence.ts';
import type { Database } from '../../db/pool.ts';
import type { LoadManifest } from '../contract/agent.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Clock } from '../kernel/clock.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import type { RunId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { Permits } from './permits.ts';
import type { ContextRegistry } from './registry.ts';
import type { ContextLoader } from './spi.ts';

/** An attempt that runs may have been stopped on another server: how soon it is noticed here. */
const RECHECK_EVERY_MS = 1_000;
/** Loads of one server that may wait for a permit. */
const WAITERS_MAX = 32;

export interface DeskDeps {
  readonly db: Database;
  readonly registry: ContextRegistry;
  readonly clock: Clock;
  readonly log: Log;
}

export type DocumentReply = { readonly kind: 'document'; readonly content: string } | { readonly kind: 'notFound' } | Refusal;

export type LoadReply =
  | { readonly kind: 'load'; readonly manifest: LoadManifest; readonly body: Readable }
  /** Nothing was loaded; `text` is for the model. */
  | { readonly kind: 'notFound' | 'refused'; readonly text: string }
  | Refusal;

const NO_LOADER = 'Nothing can be loaded at this path. INDEX.md lists what can be loaded.';
const LOADS_USED = `This turn has loaded ${LIMITS.loadsPerAttemptMax} times, which is the limit. Work with what is loaded, or tell the developer.`;

/** A load in flight, ended by its client, by its attempt's end, or by its deadline. */
class LoadWatch {
  readonly signal: AbortSignal;
  readonly #over = new AbortController();
  readonly #timers: readonly { cancel(): void }[];

  constructor(
    { db, clock }: Pick<DeskDeps, 'db' | 'clock'>,
    key: AttemptKey,
    { client, deadlineMs }: { client: AbortSignal; deadlineMs: number },
  ) {
    this.signal = AbortSignal.any([client, this.#over.signal]);
    this.#timers = [
      clock.after(deadlineMs, () => this.end()),
      clock.every(RECHECK_EVERY_MS, () => {
        checkAttempt(db, key).then(
          (state) => state?.stop === null || this.end(),
          () => {}, // the next look may find the database again; the deadline holds meanwhile
        );
      }),
    ];
  }

  end(): void {
    this.#over.abort();
    this.close();
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel();
  }
}

export class ContextDesk {
  readonly #deps: DeskDeps;
  readonly #permits = new Permits(LIMITS.loadsAtOnceMax, WAITERS_MAX);
  readonly #watches = new Map<LoadWatch, RunId>();

  constructor(deps: DeskDeps) {
    this.#deps = deps;
  }

  async readDocument(attempt: Attempt, path: string): Promise<DocumentReply> {
    const { db, registry } = this.#deps;
    const [state, request] = await Promise.all([checkAttempt(db, keyOf(attempt)), readContextRequest(db, attempt.runId)]);
    if (state?.stop !== null) return refusal(state);
    const content = request && (await registry.read(request, path));
    return content === null ? { kind: 'notFound' } : { kind: 'document', content };
  }

  /**
   * Prepares an item. The load is watched until its body has ended or is destroyed. Throws BUSY when too many wait. `client` aborts when
   * nobody reads the answer any more; then it rejects, or the body is destroyed.
   */
  async load(attempt: Attempt, path: string, client: AbortSignal): Promise<LoadReply> {
    const { db, registry } = this.#deps;
    const key = keyOf(attempt);
    const state = await checkAttempt(db, key);
    if (state?.stop !== null) return refusal(state);
    const loader = registry.loader(path);
    if (!loader) return { kind: 'notFound', text: NO_LOADER };
    if (!this.#permits.hasRoom) throw new RuntimeFault('BUSY', 'Too many loads wait on this server. Try again later.', { retry: 'later' });
    const counted = await countLoad(db, key, LIMITS.loadsPerAttemptMax);
    if (counted.kind !== 'counted')
      return counted.kind === 'full' ? { kind: 'refused', text: LOADS_USED } : refusal(await checkAttempt(db, key));
    const watch = new LoadWatch(this.#deps, key, { client, deadlineMs: counted.deadlineMs });
    this.#watches.set(watch, attempt.runId);
    try {
      return await this.#prepare(watch, { attempt, path, loader });
    } catch (error) {
      this.#forget(watch);
      if (!watch.signal.aborted || client.aborted) throw error;
      const now = await checkAttempt(db, key);
      // The deadline of the database may be a moment away from ours.
      return now?.stop === null ? { kind: 'stopped', stop: 'deadline' } : refusal(now);
    }
  }

  /** Ends the loads of runs that were stopped or taken back. */
  seal(runIds: readonly string[]): void {
    for (const [watch, runId] of this.#watches) if (runIds.includes(runId)) watch.end();
  }

  /** Loads that are prepared or sent. */
  get loads(): number {
    return this.#watches.size;
  }

  /** Loads that wait for a permit. */
  get waiting(): number {
    return this.#permits.waiting;
  }

  async #prepare(
    watch: LoadWatch,
    { attempt, path, loader }: { attempt: Attempt; path: string; loader: ContextLoader },
  ): Promise<LoadReply> {
    const { db, clock, log } = this.#deps;
    const release = await this.#permits.take(watch.signal);
    const startedMs = clock.monotonicMs();
    try {
      const request = await readContextRequest(db, attempt.runId);
      if (!request) return this.#nothing(watch, { kind: 'notFound', text: NO_LOADER });
      const result = await loader.load(request, path, watch.signal);
      const durationMs = Math.round(clock.monotonicMs() - startedMs);
      log.info('context_load', { runId: attempt.runId, loader: loader.prefix, outcome: result.kind, durationMs });
      if (result.kind !== 'prepared') return this.#nothing(watch, result);
      this.#sendUnder(watch, result.body);
      return { kind: 'load', manifest: result.manifest, body: result.body };
    } finally {
      release();
    }
  }

  #sendUnder(watch: LoadWatch, body: Readable): void {
    const cut = () => body.destroy();
    watch.signal.addEventListener('abort', cut, { once: true });
    body.once('close', () => this.#forget(watch));
    if (watch.signal.aborted) cut();
  }

  #nothing(watch: LoadWatch, reply: { readonly kind: 'notFound' | 'refused'; readonly text: string }): LoadReply {
    this.#forget(watch);
    return reply;
  }

  #forget(watch: LoadWatch): void {
    watch.close();
    this.#watches.delete(watch);
  }
}

function keyOf({ runId, epoch, sandbox }: Attempt): AttemptKey {
  return { runId, epoch, sandboxId: sandbox.sandboxId };
}

function refusal(state: Awaited<ReturnType<typeof checkAttempt>>): Refusal {
  return state?.stop ? { kind: 'stopped', stop: state.stop } : { kind: 'lost' };
}
