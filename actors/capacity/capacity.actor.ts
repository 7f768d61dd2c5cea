/**
 * Owns: the CapacityActor, one per server: the only caller of the claim statement. It gathers the offers of this server (a parked pull whose
 * conversation has a claimable turn) and claims for all of them at once, whenever an offer arrives or a slot may have come free.
 * A grant answers its pull here, so that a full mailbox cannot keep a claim from its sandbox.
 * rule: R4 (the statement takes slot rows; this actor only decides when to ask)
 * Does not own: which pulls are parked (ConversationActor), which turn goes first (the view claim_order).
 */
import { claimTurns, type Grant, type LeaseTimes } from '../../db/ledger/claim.ts';
import type { Database } from '../../db/pool.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import { freshRun, type ParkedPull } from '../conversation/pulls.ts';
import type { Behaviour } from '../kernel/index.ts';

export type CapacityCommand =
  | { readonly type: 'Offer'; readonly pull: ParkedPull }
  /** Ask the database for all offers. Told to itself after an offer, so that offers which arrive together share one statement. */
  | { readonly type: 'Claim' }
  | { readonly type: 'SlotsChanged' };

/** The pulls that wait for a claimable turn, one per conversation, oldest first. */
export type Offers = Map<ConversationId, ParkedPull>;

export interface CapacityState {
  readonly offers: Offers;
  claimIsQueued: boolean;
}

export interface CapacityDeps {
  readonly db: Database;
  readonly times: LeaseTimes;
  /** Sends `Claim` to this actor; false when it was refused. */
  claimSoon(): boolean;
  /** Tells the conversation's actor and publishes. `delivered`: the pull was still open and has been answered. */
  granted(grant: Grant, delivered: boolean): void;
  /** The outcome of a claim is unknown: the conversation's actor reads its rows again and finds what was granted. */
  unsure(conversationId: ConversationId): void;
}

/** Offers in one statement; the rest follows in the next one. */
const CLAIM_BATCH_MAX = 200;

export class CapacityBehaviour implements Behaviour<CapacityState, CapacityCommand, undefined> {
  readonly #deps: CapacityDeps;
  /** Survives a crash of one command (the database was away): the pulls are still parked. */
  readonly #offers: Offers = new Map();

  constructor(deps: CapacityDeps) {
    this.#deps = deps;
  }

  async load(): Promise<CapacityState> {
    return { offers: this.#offers, claimIsQueued: false };
  }

  async handle(state: CapacityState, command: CapacityCommand): Promise<{ state: CapacityState; reply: undefined }> {
    switch (command.type) {
      case 'Offer':
        state.offers.set(command.pull.sandbox.conversationId, command.pull);
        this.#claimSoon(state);
        break;
      case 'SlotsChanged':
        this.#claimSoon(state);
        break;
      case 'Claim':
        state.claimIsQueued = false;
        await this.#claim(state.offers);
        break;
    }
    return { state, reply: undefined };
  }

  #claimSoon(state: CapacityState): void {
    if (state.claimIsQueued || state.offers.size === 0) return;
    state.claimIsQueued = this.#deps.claimSoon();
  }

  /** What is not granted keeps its place: it is asked for again with the next offer, slot change or sweep. */
  async #claim(offers: Offers): Promise<void> {
    for (const [conversationId, pull] of offers) if (!pull.open) offers.delete(conversationId);
    const waiting = [...offers.values()];
    for (let from = 0; from < waiting.length; from += CLAIM_BATCH_MAX) {
      await this.#claimFor(offers, waiting.slice(from, from + CLAIM_BATCH_MAX));
    }
  }

  async #claimFor(offers: Offers, pulls: readonly ParkedPull[]): Promise<void> {
    const { db, times, granted, unsure } = this.#deps;
    const batch = pulls.map(({ sandbox: { conversationId, sandboxId } }) => ({ conversationId, sandboxId }));
    const grants = await claimTurns(db, batch, times).catch((error: unknown) => {
      for (const { conversationId } of batch) unsure(conversationId);
      throw error;
    });
    for (const grant of grants) {
      const pull = offers.get(grant.conversationId);
      offers.delete(grant.conversationId);
      granted(grant, pull?.answer(freshRun(grant, times)) ?? false);
    }
  }
}
