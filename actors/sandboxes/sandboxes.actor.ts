/**
 * Owns: the SandboxesActor, one per server: a conversation whose turn is next in claim order gets a sandbox on some server; idle ones end.
 * Sandboxes are given in claim order and bounded, so a flood of questions cannot start a runner for each.
 * A start is begun and not waited for, so that a slow one holds up nobody: how it went comes as a message.
 * A start that failed is tried again after a pause, here or at another server; when all have failed often enough the turn ends FAILED, so that
 * the person is told (db/ledger/give-up.ts). A sandbox that dies before it was given a run is a start that failed.
 * Each sweep compares the rows with the runners: a row without a runner ends (an insert or an end whose outcome was unknown), and so does a
 * runner whose row was ended (its lease ran out, or its host was taken for dead). Where sandboxes outlive their server the rows alone decide,
 * and those of servers that are gone are taken over.
 * Does not own: how a runner is started (SandboxHost), who may claim (CapacityActor).
 */
import { createHash } from 'node:crypto';
import { giveUpTurns } from '../../db/ledger/give-up.ts';
import { followSandboxes } from '../../db/ledger/outliving.ts';
import type { EndedTurn } from '../../db/ledger/refuse.ts';
import { endIdleSandbox, endSandbox, insertSandbox, liveSandboxes, type SandboxDemand, sandboxDemand } from '../../db/ledger/sandboxes.ts';
import type { Database } from '../../db/pool.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { type ConversationId, type HostId, newSecret, type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';
import type { Log } from '../../src/kernel/log.ts';
import { TRANSIENT } from '../../src/kernel/transient.ts';
import type { Behaviour, CommandContext } from '../kernel/index.ts';
import type { OutlivingSandboxes, SandboxHost } from '../ports.ts';

export type SandboxesCommand =
  /** A conversation has a claimable turn and no pull here. */
  | { readonly type: 'Wanted'; readonly conversationId: ConversationId }
  /** A sandbox of this server has nothing to do: it may make room for one that is wanted. */
  | { readonly type: 'Idle' }
  | { readonly type: 'Look' }
  | { readonly type: 'RunnerExited'; readonly sandboxId: SandboxId; readonly how: 'asked' | 'crashed' }
  | { readonly type: 'StartEnded'; readonly own: OwnSandbox; readonly round: number; readonly outcome: 'started' | 'busy' | 'failed' }
  | { readonly type: 'Sweep' };

export interface OwnSandbox {
  readonly id: SandboxId;
  readonly conversationId: ConversationId;
  lastBusyAt: number;
}

export interface SandboxesState {
  /** Sandboxes of this server by conversation. */
  readonly own: Map<ConversationId, OwnSandbox>;
  lookIsQueued: boolean;
  /** The last look left a conversation without the sandbox that it wants. */
  short: boolean;
  /** Starts fail: the next try is not before this time. */
  nextStartAt: number;
  /** Rounds of starts, one after the other, in which some failed. */
  failedStarts: number;
  /** Starts that were begun together are one round. */
  round: number;
  lastFailedRound: number;
}

export interface SandboxesDeps {
  readonly db: Database;
  readonly host: SandboxHost;
  readonly hostId: HostId;
  readonly log: Log;
  /** Sandboxes of this server at the same time. */
  readonly sandboxesMax: number;
  /** A sandbox without a run for this long ends, milliseconds. */
  readonly idleMs: number;
  /** A pull of this sandbox waits at this server. */
  isPulling(sandboxId: SandboxId): boolean;
  /** Sends `Look` to this actor; false when it was refused. */
  lookSoon(): boolean;
  /** Sends this actor how a start went. */
  startEnded(how: Extract<SandboxesCommand, { type: 'StartEnded' }>): void;
  /** What a sandbox held is taken back now. */
  reapNow(): void;
  /** What a person reads whose sandbox cannot be started. */
  readonly notStarted: { readonly code: string; readonly text: string };
  /** The turn has ended. Tells the conversation's actor and publishes. */
  gaveUp(turn: EndedTurn): void;
  /** For metrics. */
  startTried(outcome: 'started' | 'failed'): void;
}

/** Pause after starts that failed, doubled with each round of failures. */
const [START_PAUSE_MIN_MS, START_PAUSE_MAX_MS] = TRANSIENT.sandboxStart.growsMs;

export class SandboxesBehaviour implements Behaviour<SandboxesState, SandboxesCommand, undefined> {
  readonly #deps: SandboxesDeps;
  /** Survives a crash of one command: the runners do, too. */
  readonly #own = new Map<ConversationId, OwnSandbox>();

  constructor(deps: SandboxesDeps) {
    this.#deps = deps;
  }

  async load(): Promise<SandboxesState> {
    return { own: this.#own, lookIsQueued: false, short: false, nextStartAt: 0, failedStarts: 0, round: 0, lastFailedRound: 0 };
  }

  async handle(
    state: SandboxesState,
    command: SandboxesCommand,
    context: CommandContext,
  ): Promise<{ state: SandboxesState; reply: undefined }> {
    switch (command.type) {
      case 'Wanted': {
        const own = state.own.get(command.conversationId);
        if (own)
          own.lastBusyAt = context.now; // it is there and pulls in a moment
        else this.#lookSoon(state);
        break;
      }
      case 'Idle':
        if (state.short) this.#lookSoon(state);
        break;
      case 'Look':
        state.lookIsQueued = false;
        await this.#meetDemand(state, context.now);
        break;
      case 'RunnerExited':
        await this.#exited(state, command, context.now);
        break;
      case 'StartEnded':
        await this.#startEnded(state, command, context.now);
        break;
      case 'Sweep':
        await (this.#deps.host.outliving ? this.#follow(state, this.#deps.host.outliving, context.now) : this.#compare(state));
        await this.#endIdle(state, context.now);
        await this.#meetDemand(state, context.now);
        break;
    }
    return { state, reply: undefined };
  }

  #lookSoon(state: SandboxesState): void {
    if (!state.lookIsQueued) state.lookIsQueued = this.#deps.lookSoon();
  }

  async #meetDemand(state: SandboxesState, now: number): Promise<void> {
    const demand = await sandboxDemand(this.#deps.db, this.#deps.sandboxesMax);
    const wanted = new Set(demand.map((one) => one.conversationId));
    state.short = false;
    state.round += 1;
    for (const one of demand) {
      const own = state.own.get(one.conversationId);
      if (own && this.#deps.isPulling(own.id)) own.lastBusyAt = now; // it waits for a slot; one that does not pull is of no use
      if (one.hasSandbox) continue;
      state.short = now < state.nextStartAt || (state.own.size >= this.#deps.sandboxesMax && !(await this.#makeRoom(state, wanted)));
      if (state.short) break;
      const admitted = await this.#admit(state, one, now);
      if (admitted) void this.#start(admitted.own, admitted.credential, state.round);
    }
  }

  /** A sandbox that is not in the book any more has been seen to exit, or its row was ended: it was judged by that, and needs no runner. */
  async #startEnded(
    state: SandboxesState,
    { own, round, outcome }: Extract<SandboxesCommand, { type: 'StartEnded' }>,
    now: number,
  ): Promise<void> {
    const isOurs = state.own.get(own.conversationId) === own;
    if (outcome === 'started') state.failedStarts = 0;
    if (outcome === 'started' && !isOurs) this.#endRunner(state, own);
    if (outcome === 'started' || !isOurs) return;
    this.#forget(state, own);
    state.short = true;
    await endSandbox(this.#deps.db, own.id, outcome === 'failed');
    if (outcome === 'failed') await this.#failed(state, own.conversationId, { round, now });
  }

  /** Pauses before the next start, and ends what no server can start. `round`: none of a runner that died after its start. */
  async #failed(state: SandboxesState, conversationId: ConversationId, { round, now }: { round?: number; now: number }): Promise<void> {
    if (round === undefined || round !== state.lastFailedRound) {
      state.nextStartAt = now + Math.min(START_PAUSE_MAX_MS, START_PAUSE_MIN_MS * 2 ** state.failedStarts);
      state.failedStarts += 1;
    }
    if (round !== undefined) state.lastFailedRound = round;
    const { db, log, notStarted, gaveUp, startTried } = this.#deps;
    startTried('failed');
    for (const turn of await giveUpTurns(db, [conversationId], notStarted)) {
      log.error('turn given up: its sandbox cannot be started', { turnId: turn.turnId, conversationId: turn.conversationId });
      gaveUp(turn);
    }
  }

  /** Ends the sandbox that was idle for longest and is not next in line. */
  async #makeRoom(state: SandboxesState, wanted: ReadonlySet<ConversationId>): Promise<boolean> {
    const idle = this.#idleIds();
    const candidates = [...state.own.values()].filter((own) => idle.has(own.id) && !wanted.has(own.conversationId));
    candidates.sort((a, b) => a.lastBusyAt - b.lastBusyAt);
    for (const own of candidates) if (await this.#end(state, own)) return true;
    return false;
  }

  #idleIds(): ReadonlySet<SandboxId> {
    const idle = this.#deps.host.list().filter((runner) => runner.state === 'idle');
    return new Set(idle.flatMap((runner) => (runner.sandboxId ? [runner.sandboxId] : [])));
  }

  /** Writes the sandbox's row; null when the conversation has a sandbox by now. */
  async #admit(
    state: SandboxesState,
    { conversationId, workspaceId }: SandboxDemand,
    now: number,
  ): Promise<{ readonly own: OwnSandbox; readonly credential: string } | null> {
    const { db, hostId } = this.#deps;
    const id = uuidv7<'sandbox'>();
    const credential = newSecret();
    const credentialHash = createHash('sha256').update(credential).digest();
    const outlivesHost = this.#deps.host.outliving !== undefined;
    if (!(await insertSandbox(db, { id, conversationId, workspaceId, hostId, credentialHash, outlivesHost }))) return null;
    const older = state.own.get(conversationId);
    if (older) this.#endRunner(state, older);
    const own = { id, conversationId, lastBusyAt: now };
    state.own.set(conversationId, own);
    return { own, credential };
  }

  /** Never rejects. Its result is a message: the actor goes on meanwhile. */
  async #start(own: OwnSandbox, credential: string, round: number): Promise<void> {
    const { host, log, startTried, startEnded } = this.#deps;
    const { id: sandboxId, conversationId } = own;
    try {
      await host.start({ sandboxId, conversationId, credential });
      log.info('sandbox started', { sandboxId, conversationId });
      startTried('started');
      startEnded({ type: 'StartEnded', own, round, outcome: 'started' });
    } catch (error) {
      const busy = error instanceof RuntimeFault && (error.code === 'BUSY' || error.code === 'DRAINING');
      if (!busy) log.error('sandbox could not start', { sandboxId, conversationId }, error);
      startEnded({ type: 'StartEnded', own, round, outcome: busy ? 'busy' : 'failed' });
    }
  }

  #forget(state: SandboxesState, own: OwnSandbox): void {
    if (state.own.get(own.conversationId) === own) state.own.delete(own.conversationId);
  }

  /** Its row was ended by somebody else. Nobody waits for a runner that may hang. */
  #endRunner(state: SandboxesState, own: OwnSandbox): void {
    const { host, log } = this.#deps;
    this.#forget(state, own);
    log.warn('sandbox ended', { sandboxId: own.id, why: 'its row was ended' });
    host.end(own.id).catch((error: unknown) => log.error('sandbox could not end', { sandboxId: own.id }, error));
  }

  /** Nobody waits for a runner that may hang here either: until it is gone the host may say BUSY, and its exit makes this actor look again. */
  async #end(state: SandboxesState, own: OwnSandbox): Promise<boolean> {
    if (!(await endIdleSandbox(this.#deps.db, own.id))) return false;
    this.#forget(state, own);
    const { host, log } = this.#deps;
    log.info('sandbox ended', { sandboxId: own.id, why: 'idle' });
    const ended = host.outliving ? host.outliving.rest(own.id) : host.end(own.id);
    ended.catch((error: unknown) => log.error('sandbox could not end', { sandboxId: own.id }, error));
    return true;
  }

  async #endIdle(state: SandboxesState, now: number): Promise<void> {
    const idle = this.#idleIds();
    for (const own of [...state.own.values()]) {
      if (!idle.has(own.id)) own.lastBusyAt = now;
      else if (now - own.lastBusyAt >= this.#deps.idleMs) await this.#end(state, own);
    }
  }

  async #compare(state: SandboxesState): Promise<void> {
    const { db, hostId, log, reapNow } = this.#deps;
    const live = await liveSandboxes(db, hostId);
    const own = new Map([...state.own.values()].map((one) => [one.id, one]));
    for (const [sandboxId, one] of own) {
      if (live.has(sandboxId)) continue;
      this.#endRunner(state, one);
    }
    for (const sandboxId of live) {
      if (own.has(sandboxId)) continue;
      const { leased } = await endSandbox(db, sandboxId);
      log.warn('sandbox ended', { sandboxId, why: 'it has no runner', leased });
      reapNow();
    }
  }

  /** Sandboxes that outlive their server: the rows say which are ours, those of servers that are gone among them, and which are busy. */
  async #follow(state: SandboxesState, outliving: OutlivingSandboxes, now: number): Promise<void> {
    const rows = await followSandboxes(this.#deps.db, this.#deps.hostId);
    const ours = new Map(rows.map((row) => [row.sandboxId, row]));
    for (const own of [...state.own.values()]) if (!ours.has(own.id)) this.#forget(state, own);
    for (const { sandboxId: id, conversationId, busy } of rows) {
      const own = state.own.get(conversationId) ?? { id, conversationId, lastBusyAt: now };
      if (busy) own.lastBusyAt = now;
      state.own.set(conversationId, own);
    }
    outliving.follow(rows);
  }

  async #exited(state: SandboxesState, { sandboxId, how }: { sandboxId: SandboxId; how: string }, now: number): Promise<void> {
    const own = [...state.own.values()].find((one) => one.id === sandboxId);
    if (own) this.#forget(state, own);
    const { leased, startFailed } = await endSandbox(this.#deps.db, sandboxId, how === 'crashed');
    if (how === 'crashed') this.#deps.log.warn('sandbox died', { sandboxId, leased, startFailed });
    this.#deps.reapNow(); // also when it seemed to hold nothing: a claim may have been on its way
    if (own && startFailed) await this.#failed(state, own.conversationId, { now });
    this.#lookSoon(state);
  }
}
