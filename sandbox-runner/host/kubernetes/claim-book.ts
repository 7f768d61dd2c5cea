/**
 * Owns: what the cluster says of this installation's claims now: a list, then a watch from its version, for ever. A lost watch goes on
 * from its last version, a history that is gone (410) begins with a new list, and so does each quarter of an hour.
 * Does not own: what a change means (host.ts).
 * It forgets nothing because a list failed: only a list that succeeded says that a claim is gone.
 */
import { type Clock, pause } from '../../../src/kernel/clock.ts';
import type { Log } from '../../../src/kernel/log.ts';
import { TRANSIENT } from '../../../src/kernel/transient.ts';
import type { Cluster } from './cluster.ts';
import { ClusterFault, toClusterFault } from './faults.ts';
import type { Claim } from './objects.ts';

const LIST_AGAIN_MS = 15 * 60_000;
/** A watch that ends sooner than this was not one: the next waits. */
const WATCH_QUICK_MS = 1_000;
const [PAUSE_MIN_MS, PAUSE_MAX_MS] = TRANSIENT.kubernetesWatch.growsMs;

export interface ClaimBookOptions {
  readonly cluster: Pick<Cluster, 'listClaims' | 'watchClaims'>;
  readonly installation: string;
  readonly clock: Clock;
  readonly log: Log;
  /** A claim is new or has changed; `gone`: it was deleted. Must not throw. */
  readonly changed: (claim: Claim, how: 'set' | 'gone') => void;
  /** The API answers, or does not. */
  readonly learnt: (fault: ClusterFault | null) => void;
}

interface Known {
  readonly claim: Claim;
  /** The list before which it was known: an older list cannot say that it is gone. */
  readonly list: number;
}

export class ClaimBook {
  readonly #options: ClaimBookOptions;
  readonly #claims = new Map<string, Known>();
  readonly #waiting = new Set<() => void>();
  readonly #stop = new AbortController();
  #lists = 0;
  #synced = false;

  constructor(options: ClaimBookOptions) {
    this.#options = options;
    void this.#follow();
  }

  /** A first list has succeeded. */
  get synced(): boolean {
    return this.#synced;
  }

  get claims(): readonly Claim[] {
    return [...this.#claims.values()].map(({ claim }) => claim);
  }

  get(name: string): Claim | null {
    return this.#claims.get(name)?.claim ?? null;
  }

  /** What an own call answered: the watch says the same a little later. */
  note(claim: Claim): void {
    this.#set(claim);
  }

  /** The claim, once it is as wanted. Rejects with `missing` when it is deleted, with `away` when `signal` aborts. */
  async until(name: string, wanted: (claim: Claim) => boolean, signal: AbortSignal): Promise<Claim> {
    for (;;) {
      const claim = this.get(name);
      if (claim === null) throw new ClusterFault('missing');
      if (wanted(claim)) return claim;
      if (signal.aborted) throw new ClusterFault('away');
      await this.#change(signal);
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }

  async #follow(): Promise<void> {
    const { clock, log, learnt } = this.#options;
    for (let failures = 0; !this.#stop.signal.aborted; ) {
      try {
        await this.#listAndWatch(() => {
          failures = 0;
          learnt(null);
        });
      } catch (error) {
        const fault = toClusterFault(error);
        if (this.#stop.signal.aborted) return;
        learnt(fault.kind === 'expired' ? null : fault);
        if (fault.kind !== 'expired') log.warn('claims_watch_lost', { kind: fault.kind, failures });
        const full = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(failures++, 16));
        await pause(clock, Math.max(fault.retryAfterMs ?? 0, full * (0.5 + Math.random() / 2)), this.#stop.signal);
      }
    }
  }

  /** Returns when it is time for a new list. */
  async #listAndWatch(answered: () => void): Promise<void> {
    const { cluster, installation, clock } = this.#options;
    const { signal } = this.#stop;
    const list = ++this.#lists;
    let { claims, version } = await cluster.listClaims(installation);
    this.#replace(claims, list);
    answered();
    for (const until = clock.monotonicMs() + LIST_AGAIN_MS; clock.monotonicMs() < until && !signal.aborted; ) {
      const beganMs = clock.monotonicMs();
      version = await cluster.watchClaims(
        { installation, version },
        ({ type, claim }) => (type === 'gone' ? this.#delete(claim) : this.#set(claim)),
        signal,
      );
      if (clock.monotonicMs() - beganMs < WATCH_QUICK_MS) await pause(clock, PAUSE_MIN_MS, signal);
      else answered();
    }
  }

  #replace(claims: readonly Claim[], list: number): void {
    const there = new Set(claims.map(({ metadata }) => metadata.name));
    for (const claim of claims) this.#set(claim);
    this.#synced = true;
    for (const [name, known] of this.#claims) if (!there.has(name) && known.list < list) this.#delete(known.claim);
    this.#wake();
  }

  #set(claim: Claim): void {
    this.#claims.set(claim.metadata.name, { claim, list: this.#lists });
    this.#options.changed(claim, 'set');
    this.#wake();
  }

  #delete(claim: Claim): void {
    this.#claims.delete(claim.metadata.name);
    this.#options.changed(claim, 'gone');
    this.#wake();
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}
