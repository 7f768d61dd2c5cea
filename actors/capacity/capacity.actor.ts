/**
 * Owns: the CapacityActor, one per server: the only caller of the claim statement. It gathers the offers of this server (a parked pull whose
 * conversation has a claimable turn) and claims for all of them at once, whenever an offer arrives or a slot may have come free.
 * The statement ranks them with the pulls that wait at other servers and grants to the first of all (ADR 14). A grant to a pull of this server
 * answers it here, so that a full mailbox cannot keep a claim from its sandbox; a grant to another server's pull is told there. What others
 * granted to a pull of this server arrives as a change of its conversation; a sweep finds what nobody told.
 * It also ends turns that are not admitted and for which no sandbox or no slot is there: a person is told at once.
 * rule: R4 (the statement takes slot rows; this actor only decides when to ask)
 * Does not own: which pulls are parked (ConversationActor), which turn goes first (the view claim_order).
 */
import { type ClaimRules, claimTurns, type Grant, type Offer } from '../../db/ledger/claim.ts';
import { findPlaced } from '../../db/ledger/placed.ts';
import { type RefusedTurn, refuseOldest, refuseTurns } from '../../db/ledger/refuse.ts';
import type { Database } from '../../db/pool.ts';
import type { ConversationId, HostId } from '../../src/kernel/ids.ts';
import type { Log } from '../../src/kernel/log.ts';
import { type ParkedPull, toRun } from '../conversation/pulls.ts';
import type { Behaviour } from '../kernel/index.ts';

export type CapacityCommand =
  | { readonly type: 'Offer'; readonly pull: ParkedPull }
  /** A pull was closed without a run: other servers must not give it one. */
  | { readonly type: 'Withdraw'; readonly pull: ParkedPull }
  /** A conversation has a claimable turn and no pull here. */
  | { readonly type: 'Judge'; readonly conversationId: ConversationId }
  /** Ask the database for all offers. Told to itself after an offer, so that offers which arrive together share one statement. */
  | { readonly type: 'Claim' }
  | { readonly type: 'SlotsChanged' }
  /** What made a waiting turn refusable may have come after it: a budget that is spent, a model that was taken away. */
  | { readonly type: 'Sweep' };

/** The pulls that wait for a claimable turn, one per conversation, oldest first. */
export type Offers = Map<ConversationId, ParkedPull>;

export interface CapacityState {
  readonly offers: Offers;
  /** Conversations with a new claimable turn that nobody has judged yet. */
  readonly unjudged: Set<ConversationId>;
  claimIsQueued: boolean;
}

export interface CapacityDeps {
  readonly db: Database;
  readonly log: Log;
  /** This boot of this server. */
  readonly hostId: HostId;
  readonly rules: ClaimRules;
  /** Sends `Claim` to this actor; false when it was refused. */
  claimSoon(): boolean;
  /** Tells the conversation's actor and publishes. `delivered`: the pull was still open and has been answered. */
  granted(grant: Grant, delivered: boolean): void;
  /** The grant belongs to a pull that is parked at another server. Publishes. */
  grantedElsewhere(grant: Grant): void;
  /** The turn has ended. Tells the conversation's actor and publishes. */
  refused(turn: RefusedTurn): void;
  /** A claim that this actor does not know may be there: the conversation's actor reads its rows again and finds what was granted. */
  unsure(conversationId: ConversationId): void;
}

/** Conversations that are judged in one statement; the rest follows in the next one. */
const JUDGE_BATCH_MAX = 200;
/** Turns that one sweep judges. */
const SWEEP_MAX = 200;

export class CapacityBehaviour implements Behaviour<CapacityState, CapacityCommand, undefined> {
  readonly #deps: CapacityDeps;
  /** Survives a crash of one command (the database was away): the pulls are still parked. */
  readonly #offers: Offers = new Map();
  readonly #unjudged = new Set<ConversationId>();
  /** Other servers may see pulls of this one in the rows. */
  #recorded = false;

  constructor(deps: CapacityDeps) {
    this.#deps = deps;
  }

  async load(): Promise<CapacityState> {
    return { offers: this.#offers, unjudged: this.#unjudged, claimIsQueued: false };
  }

  async handle(state: CapacityState, command: CapacityCommand): Promise<{ state: CapacityState; reply: undefined }> {
    switch (command.type) {
      case 'Offer':
        // Also when it is offered again: a judgement that met another writer of the conversation judged nothing.
        state.unjudged.add(command.pull.sandbox.conversationId);
        state.offers.set(command.pull.sandbox.conversationId, command.pull);
        this.#claimSoon(state);
        break;
      case 'Withdraw':
        if (state.offers.get(command.pull.sandbox.conversationId) !== command.pull) break;
        state.offers.delete(command.pull.sandbox.conversationId);
        this.#claimSoon(state);
        break;
      case 'Judge':
        state.unjudged.add(command.conversationId);
        this.#claimSoon(state);
        break;
      case 'SlotsChanged':
        this.#claimSoon(state);
        break;
      case 'Claim':
        state.claimIsQueued = false;
        await this.#claim(state);
        await this.#judge(state);
        break;
      case 'Sweep':
        this.#tellRefused(state, await refuseOldest(this.#deps.db, SWEEP_MAX, this.#deps.rules.refusals));
        await this.#findPlaced(state);
        this.#claimSoon(state);
        break;
    }
    return { state, reply: undefined };
  }

  #claimSoon(state: CapacityState): void {
    if (state.claimIsQueued || (state.offers.size === 0 && state.unjudged.size === 0 && !this.#recorded)) return;
    state.claimIsQueued = this.#deps.claimSoon();
  }

  /** What is not granted keeps its place: it is asked for again with the next offer, slot change or sweep. */
  async #claim(state: CapacityState): Promise<void> {
    const { offers, unjudged } = state;
    const { db, hostId, rules, granted, grantedElsewhere, unsure } = this.#deps;
    const asked = openOffers(offers);
    if (asked.length === 0 && !this.#recorded) return;
    this.#recorded = true; // unless the rows say otherwise
    const { grants, refused } = await claimTurns(db, { hostId, offers: asked }, rules).catch((error: unknown) => {
      for (const { conversationId } of asked) unsure(conversationId);
      throw error;
    });
    const own = new Set(asked.map((offer) => offer.sandboxId));
    for (const grant of grants) {
      unjudged.delete(grant.conversationId);
      if (!own.has(grant.sandboxId)) {
        grantedElsewhere(grant);
        continue;
      }
      const pull = offers.get(grant.conversationId);
      offers.delete(grant.conversationId);
      granted(grant, pull?.answer(toRun(grant, grant)) ?? false);
    }
    this.#tellRefused(state, refused);
    this.#recorded = offers.size > 0 || refused.length > 0;
    if (refused.length > 0) this.#claimSoon(state); // they stood before others, and a slot may be free for those
  }

  /** The claim of another server for a pull that is still open here: its word was lost. */
  async #findPlaced(state: CapacityState): Promise<void> {
    const waiting = openOffers(state.offers);
    if (waiting.length === 0) return;
    for (const conversationId of await findPlaced(this.#deps.db, waiting)) {
      state.offers.delete(conversationId);
      this.#deps.unsure(conversationId);
    }
  }

  /** What no claim has judged: no sandbox pulls for it, or no slot is free. */
  async #judge(state: CapacityState): Promise<void> {
    if (state.unjudged.size === 0) return;
    const batch = [...state.unjudged].slice(0, JUDGE_BATCH_MAX);
    this.#tellRefused(state, await refuseTurns(this.#deps.db, batch, this.#deps.rules.refusals));
    for (const conversationId of batch) state.unjudged.delete(conversationId);
    if (state.unjudged.size > 0) this.#claimSoon(state);
  }

  /** The offer of a refused turn is gone with it: the conversation's actor offers its pull again for the next one. */
  #tellRefused({ offers, unjudged }: Pick<CapacityState, 'offers' | 'unjudged'>, refused: readonly RefusedTurn[]): void {
    const { log, refused: tell } = this.#deps;
    for (const turn of refused) {
      offers.delete(turn.conversationId);
      unjudged.delete(turn.conversationId);
      log.info('turn refused', { turnId: turn.turnId, runId: turn.runId, code: turn.refusal });
      tell(turn);
    }
  }
}

/** Forgets the pulls that were closed and returns the others, oldest first. */
function openOffers(offers: Offers): readonly Offer[] {
  for (const [conversationId, pull] of offers) if (!pull.open) offers.delete(conversationId);
  return [...offers.values()].map(({ sandbox: { conversationId, sandboxId } }) => ({ conversationId, sandboxId }));
}
