/**
 * Owns: the CapacityActor, one per server: the only caller of the claim statement. It gathers the offers of this server (a parked pull whose
 * conversation has a claimable turn) and claims for all of them at once, whenever an offer arrives or a slot may have come free.
 * rule: R4 (the statement takes slot rows; this actor only decides when to ask)
 * Does not own: parked pulls (ConversationActor), which turn goes first (the view claim_order).
 */
import { claimTurns, type Grant, type LeaseTimes, type Offer } from '../../db/ledger/claim.ts';
import type { Database } from '../../db/pool.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import type { Behaviour } from '../kernel/index.ts';

export type CapacityCommand =
  | { readonly type: 'Offer'; readonly offer: Offer }
  | { readonly type: 'Withdraw'; readonly offer: Offer }
  /** Ask the database for all offers. Told to itself after an offer, so that offers which arrive together share one statement. */
  | { readonly type: 'Claim' }
  | { readonly type: 'SlotsChanged' };

export interface CapacityState {
  /** One offer per conversation, oldest first. */
  readonly offers: Map<ConversationId, Offer>;
  claimIsQueued: boolean;
}

export interface CapacityDeps {
  readonly db: Database;
  readonly times: LeaseTimes;
  /** Sends `Claim` to this actor. */
  claimSoon(): void;
  /** Tells the conversation's actor, which answers the pull and publishes. */
  granted(grant: Grant): void;
}

/** Offers in one statement; the rest follows at once in the next one. */
const CLAIM_BATCH_MAX = 200;

export class CapacityBehaviour implements Behaviour<CapacityState, CapacityCommand, undefined> {
  readonly #deps: CapacityDeps;
  /** Survives a crash of one command (the database was away): the pulls are still parked. */
  readonly #offers = new Map<ConversationId, Offer>();

  constructor(deps: CapacityDeps) {
    this.#deps = deps;
  }

  async load(): Promise<CapacityState> {
    return { offers: this.#offers, claimIsQueued: false };
  }

  async handle(state: CapacityState, command: CapacityCommand): Promise<{ state: CapacityState; reply: undefined }> {
    switch (command.type) {
      case 'Offer':
        state.offers.set(command.offer.conversationId, command.offer);
        this.#claimSoon(state);
        break;
      case 'Withdraw':
        if (state.offers.get(command.offer.conversationId)?.sandboxId === command.offer.sandboxId) {
          state.offers.delete(command.offer.conversationId);
        }
        break;
      case 'SlotsChanged':
        this.#claimSoon(state);
        break;
      case 'Claim':
        state.claimIsQueued = false;
        await this.#claim(state);
        break;
    }
    return { state, reply: undefined };
  }

  #claimSoon(state: CapacityState): void {
    if (state.claimIsQueued || state.offers.size === 0) return;
    state.claimIsQueued = true;
    this.#deps.claimSoon();
  }

  async #claim(state: CapacityState): Promise<void> {
    const batch = [...state.offers.values()].slice(0, CLAIM_BATCH_MAX);
    if (batch.length === 0) return;
    const grants = await claimTurns(this.#deps.db, batch, this.#deps.times);
    for (const grant of grants) {
      state.offers.delete(grant.conversationId);
      this.#deps.granted(grant);
    }
    // What was not granted keeps its place: an offer is asked for again with the next offer, slot change or sweep.
    if (grants.length > 0 && state.offers.size > 0 && batch.length === CLAIM_BATCH_MAX) this.#claimSoon(state);
  }
}
