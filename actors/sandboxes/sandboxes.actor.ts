/**
 * Owns: the SandboxesActor, one per server: a conversation whose turn is next in claim order gets a sandbox on some server; idle ones end.
 * Sandboxes are given in claim order and bounded, so a flood of questions cannot start a runner for each.
 * Does not own: how a runner is started (SandboxHost), who may claim (CapacityActor).
 */
import { createHash } from 'node:crypto';
import { endIdleSandbox, endSandbox, insertSandbox, type SandboxDemand, sandboxDemand } from '../../db/ledger/sandboxes.ts';
import type { Database } from '../../db/pool.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { type ConversationId, type HostId, newSecret, type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';
import type { Log } from '../../src/kernel/log.ts';
import type { Behaviour, CommandContext } from '../kernel/index.ts';
import type { SandboxHost } from '../ports.ts';

export type SandboxesCommand =
  /** A conversation has a claimable turn and no pull here. */
  | { readonly type: 'Wanted'; readonly conversationId: ConversationId }
  | { readonly type: 'Look' }
  | { readonly type: 'RunnerExited'; readonly sandboxId: SandboxId; readonly how: 'asked' | 'crashed' }
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
  lookSoon(): void;
  /** A runner died with a run in its hands: take it back now. */
  reapNow(): void;
}

export class SandboxesBehaviour implements Behaviour<SandboxesState, SandboxesCommand, undefined> {
  readonly #deps: SandboxesDeps;
  /** Survives a crash of one command: the runners do, too. */
  readonly #own = new Map<ConversationId, OwnSandbox>();

  constructor(deps: SandboxesDeps) {
    this.#deps = deps;
  }

  async load(): Promise<SandboxesState> {
    return { own: this.#own, lookIsQueued: false };
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
      case 'Look':
        state.lookIsQueued = false;
        await this.#meetDemand(state, context.now);
        break;
      case 'RunnerExited':
        await this.#exited(state, command);
        break;
      case 'Sweep':
        await this.#endIdle(state, context.now);
        await this.#meetDemand(state, context.now);
        break;
    }
    return { state, reply: undefined };
  }

  #lookSoon(state: SandboxesState): void {
    if (state.lookIsQueued) return;
    state.lookIsQueued = true;
    this.#deps.lookSoon();
  }

  async #meetDemand(state: SandboxesState, now: number): Promise<void> {
    const demand = await sandboxDemand(this.#deps.db, this.#deps.sandboxesMax);
    const wanted = new Set(demand.map((one) => one.conversationId));
    for (const one of demand) {
      if (one.hasSandbox) continue;
      if (state.own.size >= this.#deps.sandboxesMax && !(await this.#makeRoom(state, wanted))) return;
      await this.#start(state, one, now);
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

  async #start(state: SandboxesState, { conversationId, workspaceId }: SandboxDemand, now: number): Promise<void> {
    const { db, host, hostId, log } = this.#deps;
    const id = uuidv7<'sandbox'>();
    const credential = newSecret();
    const credentialHash = createHash('sha256').update(credential).digest();
    if (!(await insertSandbox(db, { id, conversationId, workspaceId, hostId, credentialHash }))) return;
    state.own.set(conversationId, { id, conversationId, lastBusyAt: now });
    try {
      await host.start({ sandboxId: id, conversationId, credential });
      log.info('sandbox started', { sandboxId: id, conversationId });
    } catch (error) {
      state.own.delete(conversationId);
      await endSandbox(db, id);
      if (!(error instanceof RuntimeFault && error.code === 'BUSY')) log.error('sandbox could not start', { sandboxId: id }, error);
    }
  }

  async #end(state: SandboxesState, own: OwnSandbox): Promise<boolean> {
    if (!(await endIdleSandbox(this.#deps.db, own.id))) return false;
    state.own.delete(own.conversationId);
    await this.#deps.host.end(own.id);
    this.#deps.log.info('sandbox ended', { sandboxId: own.id, why: 'idle' });
    return true;
  }

  async #endIdle(state: SandboxesState, now: number): Promise<void> {
    const idle = this.#idleIds();
    for (const own of [...state.own.values()]) {
      if (!idle.has(own.id)) own.lastBusyAt = now;
      else if (now - own.lastBusyAt >= this.#deps.idleMs) await this.#end(state, own);
    }
  }

  async #exited(state: SandboxesState, { sandboxId, how }: { sandboxId: SandboxId; how: string }): Promise<void> {
    for (const own of state.own.values()) if (own.id === sandboxId) state.own.delete(own.conversationId);
    const { leased } = await endSandbox(this.#deps.db, sandboxId);
    if (how === 'crashed') this.#deps.log.warn('sandbox died', { sandboxId, leased });
    if (leased) this.#deps.reapNow();
    this.#lookSoon(state);
  }
}
