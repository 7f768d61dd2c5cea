/**
 * Owns: sandboxes as pods of a cluster, through agent-sandbox's claims. The server sees it through SandboxHost of actors/ports.ts.
 * A pod belongs to the installation, not to this process: when the server goes it runs on, and another server takes it over
 * (spec/decisions/0038). The rows say which server answers for which sandbox; the cluster is made to agree with them.
 * Does not own: which conversation needs a sandbox and when it is idle (SandboxesActor), the rows (db/ledger/outliving.ts), what a pod may
 * see and reach (the SandboxTemplate in deploy/).
 */
import { type Clock, pause, type Timer } from '../../../src/kernel/clock.ts';
import { RuntimeFault } from '../../../src/kernel/faults.ts';
import type { ConversationId, SandboxId } from '../../../src/kernel/ids.ts';
import type { Log } from '../../../src/kernel/log.ts';
import { Access } from './access.ts';
import { type BringUpDeps, bringUp } from './bring-up.ts';
import { ClaimBook } from './claim-book.ts';
import type { Cluster } from './cluster.ts';
import { persistently, toClusterFault } from './faults.ts';
import { type Claim, handedTo, isGoing, isLost, isResting, patches, reasonOf, sandboxIdOf, shutdownMsOf } from './objects.ts';

/** How long a sandbox that no server renews lives on: longer than the longest turn. */
const BACKSTOP_MS = 20 * 60_000;
const COMPARE_EVERY_MS = 15_000;
/** An end is repeated for this long; then the comparison finds it. */
const END_MAX_MS = 30_000;

export interface KubernetesSandboxHostOptions {
  readonly cluster: Cluster;
  /** Our objects carry it; those of another installation are left alone. */
  readonly installation: string;
  readonly warmPool: string;
  readonly gateway: string;
  /** From the wish for a sandbox to a pod that has its credential. */
  readonly readyMaxMs: number;
  /** How long an idle sandbox is kept suspended for its conversation; 0: it is deleted. */
  readonly suspendedMs: number;
  /** Those of these sandboxes that have a live row, at whichever server. */
  readonly liveAmong: (ids: readonly SandboxId[]) => Promise<ReadonlySet<SandboxId>>;
  readonly clock: Clock;
  readonly log: Log;
  readonly compareEveryMs?: number;
  readonly backstopMs?: number;
}

type State = 'starting' | 'idle' | 'busy' | 'ending';

interface Pod {
  readonly sandboxId: SandboxId;
  readonly conversationId: ConversationId;
  readonly startedAt: number;
  readonly starting: AbortController;
  state: State;
  /** The claim's name; null until it is known. */
  claim: string | null;
  /** The addresses of the pod that has the credential. */
  handed: string | null;
  renewing: boolean;
}

type ExitListener = (sandboxId: SandboxId, how: 'asked' | 'crashed') => void;

export class KubernetesSandboxHost {
  /** This host's sandboxes live on when the server ends. */
  readonly outliving = this;
  readonly #options: KubernetesSandboxHostOptions;
  readonly #access: Access;
  readonly #book: ClaimBook;
  readonly #pods = new Map<SandboxId, Pod>();
  /** Claims whose row has just ended and that are not labelled as resting yet. */
  readonly #suspending = new Set<string>();
  readonly #listeners = new Set<ExitListener>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #timer: Timer;
  #draining = false;

  constructor(options: KubernetesSandboxHostOptions) {
    this.#options = options;
    const { cluster, installation, clock, log } = options;
    this.#access = new Access(cluster, clock);
    this.#book = new ClaimBook({
      ...{ cluster, installation, clock, log },
      changed: (claim, how) => this.#changed(claim, how),
      learnt: (fault) => this.#access.learnt(fault),
    });
    this.#timer = clock.every(options.compareEveryMs ?? COMPARE_EVERY_MS, () => this.#track(this.#endOrphans()));
  }

  /** Resolves at once: a start that fails later is told by `onExit`, so that a slow pod keeps no other sandbox waiting. */
  async start(request: { sandboxId: SandboxId; conversationId: ConversationId; credential: string }): Promise<void> {
    if (this.#draining) throw new RuntimeFault('DRAINING', 'The server is stopping. Try again in a moment.', { retry: 'later' });
    const pod = this.#add(request, 'starting');
    this.#track(this.#bringUp(pod, request.credential));
  }

  /** The rows say that it has ended. */
  async end(sandboxId: SandboxId): Promise<void> {
    const pod = this.#forget(sandboxId);
    if (pod?.claim) this.#track(this.#delete(pod.claim));
  }

  /** Its row has ended because it was idle: its pod goes, and its conversation gets it back with another credential. */
  async rest(sandboxId: SandboxId): Promise<void> {
    const pod = this.#forget(sandboxId);
    const claim = pod?.claim ? this.#book.get(pod.claim) : null;
    if (claim !== null) this.#track(this.#suspend(claim));
  }

  onExit(listener: ExitListener): void {
    this.#listeners.add(listener);
  }

  list(): readonly { sandboxId: SandboxId; state: State; pid: null; startedAt: number }[] {
    return [...this.#pods.values()].map(({ sandboxId, state, startedAt }) => ({ sandboxId, state, startedAt, pid: null }));
  }

  /** All live rows of this server. What it does not know it takes over; what is not among them belongs to another server by now. */
  follow(rows: readonly { sandboxId: SandboxId; conversationId: ConversationId; busy: boolean }[]): void {
    const wanted = new Map(rows.map((row) => [row.sandboxId, row]));
    for (const pod of [...this.#pods.values()]) {
      const row = wanted.get(pod.sandboxId);
      if (row === undefined) this.#forget(pod.sandboxId);
      else if (pod.state === 'idle' || pod.state === 'busy') pod.state = row.busy ? 'busy' : 'idle';
      this.#renew(pod);
    }
    if (!this.#book.synced || this.#draining) return;
    for (const row of rows) if (!this.#pods.has(row.sandboxId)) this.#takeOver(row);
  }

  /** For /readyz. */
  access(): { readonly warning: string | null; readonly why: string } {
    return this.#access.state();
  }

  /** Pods run on. What is on its way gets `graceMs` to arrive; then its row ends. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    const late = new AbortController();
    await Promise.race([Promise.all(this.#work), pause(this.#options.clock, graceMs, late.signal)]);
    late.abort();
    for (const pod of [...this.#pods.values()]) {
      if (pod.state !== 'starting') continue;
      this.#forget(pod.sandboxId);
      this.#tell(pod.sandboxId, 'asked');
    }
    this.#timer.cancel();
    this.#access.stop();
    this.#book.stop();
  }

  #add(of: { sandboxId: SandboxId; conversationId: ConversationId }, state: State): Pod {
    const { sandboxId, conversationId } = of;
    const startedAt = this.#options.clock.now();
    const pod: Pod = {
      ...{ sandboxId, conversationId, startedAt, state },
      ...{ starting: new AbortController(), claim: null, handed: null, renewing: false },
    };
    this.#pods.set(sandboxId, pod);
    return pod;
  }

  async #bringUp(pod: Pod, credential: string): Promise<void> {
    const { clock, log, installation, readyMaxMs } = this.#options;
    const { sandboxId, conversationId } = pod;
    const limit = clock.after(readyMaxMs, () => pod.starting.abort());
    const beganMs = clock.monotonicMs();
    try {
      const claim = await bringUp(this.#deps(), { installation, sandboxId, conversationId, credential }, pod.starting.signal);
      pod.claim = claim.metadata.name;
      pod.handed = handedTo(claim);
      pod.state = 'idle';
      log.info('pod_ready', { sandboxId, ms: Math.round(clock.monotonicMs() - beganMs) });
      this.#changed(this.#book.get(pod.claim) ?? claim, 'set');
      if (!this.#pods.has(sandboxId)) await this.#delete(pod.claim);
    } catch (error) {
      const { kind } = toClusterFault(error);
      this.#access.learnt(toClusterFault(error));
      const claims = this.#book.claims.filter((claim) => sandboxIdOf(claim) === sandboxId);
      log.warn('pod_not_started', { sandboxId, kind, reason: claims[0] ? reasonOf(claims[0]) : null });
      this.#exited(sandboxId, 'crashed');
      for (const claim of claims) await this.#delete(claim.metadata.name);
    } finally {
      limit.cancel();
    }
  }

  #deps(): BringUpDeps {
    const { cluster, clock, warmPool, gateway } = this.#options;
    return { cluster, clock, warmPool, gateway, book: this.#book, shutdownAt: () => this.#in(this.#backstopMs) };
  }

  get #backstopMs(): number {
    return this.#options.backstopMs ?? BACKSTOP_MS;
  }

  #in(ms: number): Date {
    return new Date(this.#options.clock.now() + ms);
  }

  /** Another server started it. One whose pod never got its credential is worth nothing: nobody knows the credential any more. */
  #takeOver(row: { sandboxId: SandboxId; conversationId: ConversationId; busy: boolean }): void {
    const claim = this.#book.claims.find((one) => sandboxIdOf(one) === row.sandboxId && !isResting(one));
    const handed = claim ? handedTo(claim) : null;
    if (claim === undefined || handed === null || isLost(claim, handed)) {
      this.#options.log.warn('pod_not_taken_over', { sandboxId: row.sandboxId, there: claim !== undefined });
      this.#tell(row.sandboxId, 'asked');
      return;
    }
    const pod = this.#add(row, row.busy ? 'busy' : 'idle');
    pod.claim = claim.metadata.name;
    pod.handed = handed;
    this.#options.log.info('pod_taken_over', { sandboxId: row.sandboxId, busy: row.busy });
    this.#renew(pod);
  }

  #changed(claim: Claim, how: 'set' | 'gone'): void {
    const sandboxId = sandboxIdOf(claim);
    const pod = sandboxId === null ? undefined : this.#pods.get(sandboxId);
    if (pod === undefined || pod.handed === null || pod.claim !== claim.metadata.name) return;
    if (how === 'set' && !isLost(claim, pod.handed)) return;
    this.#exited(pod.sandboxId, 'crashed');
    if (how === 'set') this.#track(this.#delete(claim.metadata.name));
  }

  /** The backstop behind our lease moves while a server answers for the sandbox. */
  #renew(pod: Pod): void {
    const claim = pod.claim === null ? null : this.#book.get(pod.claim);
    if (claim === null || pod.renewing || shutdownMsOf(claim) - this.#options.clock.now() > this.#backstopMs / 2) return;
    pod.renewing = true;
    const renewal = this.#options.cluster.patchClaim(claim.metadata.name, patches.renewed(this.#in(this.#backstopMs)));
    this.#track(
      renewal
        .then((renewed) => this.#book.note(renewed))
        .catch((error: unknown) => this.#access.learnt(toClusterFault(error)))
        .finally(() => {
          pod.renewing = false;
        }),
    );
  }

  async #suspend(claim: Claim): Promise<void> {
    const { cluster, log, suspendedMs } = this.#options;
    const { name } = claim.metadata;
    const sandbox = claim.status?.sandbox?.name;
    if (suspendedMs === 0 || sandbox === undefined || isGoing(claim)) return this.#delete(name);
    this.#suspending.add(name);
    try {
      this.#book.note(await cluster.patchClaim(name, patches.resting(this.#in(suspendedMs))));
      await cluster.setOperatingMode(sandbox, 'Suspended');
      log.info('pod_suspended', { sandboxId: sandboxIdOf(claim) });
    } catch (error) {
      log.warn('pod_not_suspended', { sandboxId: sandboxIdOf(claim), kind: toClusterFault(error).kind });
      await this.#delete(name);
    } finally {
      this.#suspending.delete(name);
    }
  }

  /** Claims of this installation that no row wants. Rows are written before claims, so a claim without a live row is over. */
  async #endOrphans(): Promise<void> {
    if (!this.#book.synced) return;
    const claims = this.#book.claims.filter((claim) => !isResting(claim) && !isGoing(claim) && !this.#suspending.has(claim.metadata.name));
    const ids = claims.flatMap((claim) => sandboxIdOf(claim) ?? []);
    if (ids.length === 0) return;
    const live = await this.#options.liveAmong(ids).catch(() => null);
    if (live === null) return; // the database is away: nothing is known, so nothing is ended
    for (const claim of claims) {
      const sandboxId = sandboxIdOf(claim);
      if (sandboxId === null || live.has(sandboxId)) continue;
      this.#options.log.info('pod_unwanted', { sandboxId });
      await this.#delete(claim.metadata.name);
    }
  }

  async #delete(name: string): Promise<void> {
    const claim = this.#book.get(name);
    if (claim === null) return;
    const { cluster, clock, log } = this.#options;
    const limit = new AbortController();
    const timer = clock.after(END_MAX_MS, () => limit.abort());
    await persistently(() => cluster.deleteClaim(claim), { clock, signal: limit.signal }).catch((error: unknown) =>
      log.warn('pod_not_ended', { sandboxId: sandboxIdOf(claim), kind: toClusterFault(error).kind }),
    );
    timer.cancel();
  }

  #forget(sandboxId: SandboxId): Pod | undefined {
    const pod = this.#pods.get(sandboxId);
    this.#pods.delete(sandboxId);
    pod?.starting.abort();
    return pod;
  }

  #exited(sandboxId: SandboxId, how: 'asked' | 'crashed'): void {
    if (this.#forget(sandboxId) !== undefined) this.#tell(sandboxId, how);
  }

  #tell(sandboxId: SandboxId, how: 'asked' | 'crashed'): void {
    for (const listener of this.#listeners) {
      try {
        listener(sandboxId, how);
      } catch (error) {
        this.#options.log.error('runner_listener_failed', { sandboxId }, error);
      }
    }
  }

  #track(work: Promise<unknown>): void {
    const done = work
      .catch((error: unknown) => this.#options.log.error('cluster_work_failed', {}, error))
      .finally(() => this.#work.delete(done));
    this.#work.add(done);
  }
}
