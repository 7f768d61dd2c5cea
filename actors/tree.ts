/**
 * Owns: how the actors are wired to each other, their bounds and their timers.
 * Does not own: what an actor does (its own folder), the door that HTTP calls (calls.ts), the order of a shutdown (main.ts).
 */

import type { Grant, LeaseTimes } from '../db/ledger/claim.ts';
import type { ChangedConversation } from '../db/ledger/erase.ts';
import type { TakenBack } from '../db/ledger/reap.ts';
import type { EndedTurn } from '../db/ledger/refuse.ts';
import type { Database } from '../db/pool.ts';
import type { ContextResponse } from '../src/contract/agent.ts';
import type { Change } from '../src/contract/changes.ts';
import type { Clock, Timer } from '../src/kernel/clock.ts';
import type { ConversationId, HostId, RunId, SandboxId } from '../src/kernel/ids.ts';
import type { Log } from '../src/kernel/log.ts';
import { type Conversations, createRuntime } from './calls.ts';
import { CapacityBehaviour, type CapacityCommand } from './capacity/capacity.actor.ts';
import { ConversationBehaviour } from './conversation/conversation.actor.ts';
import type { ParkedPull } from './conversation/pulls.ts';
import { Renewals } from './conversation/renewals.ts';
import { createEntryWrites, tellChanged } from './entry-writes.ts';
import type { FailureTexts } from './failure-texts.ts';
import { ActorSystem, type ActorView, type KernelObserver, type SingleActor } from './kernel/index.ts';
import { Outbox, type OutboxOptions } from './outbox/index.ts';
import type { ChangeSink, PartialSink, SandboxHost, TurnObserver } from './ports.ts';
import { ReaperBehaviour, type ReaperCommand } from './reaper/reaper.actor.ts';
import type { Runtime } from './runtime.ts';
import { SandboxesBehaviour, type SandboxesCommand } from './sandboxes/sandboxes.actor.ts';

export interface ActorsDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: KernelObserver;
  readonly changes: ChangeSink;
  readonly partials: PartialSink;
  readonly turns?: TurnObserver;
  /**
   * Builds what `GET context` answers. null: its turn is gone. `too-long`: the turn fails with it. The fence is judged by the caller, at the
   * same time.
   */
  readonly buildContext: (runId: RunId) => Promise<ContextResponse | 'too-long' | null>;
  readonly sandboxHost: SandboxHost;
  /** Absent: this server says nothing in Slack. */
  readonly outbox?: OutboxOptions;
  readonly host: { readonly id: HostId; readonly predecessorOf: string | null };
  readonly texts: FailureTexts;
  readonly times: LeaseTimes;
  readonly maxFollowUps: number;
  readonly sandboxesMax: number;
  readonly sandboxIdleMs: number;
  /** How often leases, hosts, demand and unserved offers are looked at, milliseconds. */
  readonly sweepMs: number;
}

export interface Actors {
  readonly runtime: Runtime;
  /** Starts the timers. Before it, nothing is claimed by itself. */
  start(): void;
  /** A change of another server, or one found by the catch-up sweep. */
  changed(change: Change): void;
  /** Entries that something beside the runtime has erased; told to the actors, the streams and the other servers. */
  entriesErased(conversations: readonly ChangedConversation[]): void;
  /** Conversations with an actor in memory, for the catch-up sweep. */
  activeConversationIds(): readonly ConversationId[];
  views(limit?: number): readonly ActorView[];
  /** A turn was ended without an attempt, by an operator: whoever shows it is told. */
  turnEnded(turn: EndedTurn): void;
  /** Attempts that a dead predecessor of this host held are taken back now. Returns their number. */
  reap(): Promise<number>;
  /** No new pull is parked or claimed; parked ones are answered empty. The rest goes on. */
  stopClaiming(): void;
  /** Answers what was accepted, then stops. True when everything was answered in time. */
  drain(graceMs: number): Promise<boolean>;
}

/** Bounds of one server; each actor costs about 3 KB. */
const CONVERSATIONS = { mailboxMax: 100, actorsMax: 50_000, idleMs: 60_000, handlerMs: 20_000, sweepMs: 5_000 };
/** What is told to a single actor never expires: an exit that nobody hears of would leave a sandbox alive in the rows. */
const SINGLE = { mailboxMax: 100_000, handlerMs: 30_000, mailboxWaitMs: Number.POSITIVE_INFINITY };

/** Nobody counts. */
const UNOBSERVED: TurnObserver = {
  turnEnded: () => {},
  attemptTakenBack: () => {},
  fencingRejected: () => {},
  sandboxStart: () => {},
  leaseRenewed: () => {},
  attemptEnded: () => {},
  erased: () => {},
};

class Tree implements Actors {
  readonly #deps: ActorsDeps;
  readonly #system: ActorSystem;
  readonly #conversations: Conversations;
  readonly #capacity: SingleActor<CapacityCommand, undefined>;
  readonly #sandboxes: SingleActor<SandboxesCommand, undefined>;
  readonly #reaper: SingleActor<ReaperCommand, number>;
  readonly #outbox: Outbox | null;
  readonly #parked = new Set<ParkedPull>();
  readonly #active = new Set<ConversationId>();
  readonly #timers: Timer[] = [];
  #claiming = true;

  readonly #turns: TurnObserver;
  readonly runtime: Runtime;

  constructor(deps: ActorsDeps) {
    this.#deps = deps;
    this.#turns = turnsToldTo(deps.turns ?? UNOBSERVED, () => this.#outbox?.look());
    const { db, clock, log, times, texts, host } = deps;
    this.#system = new ActorSystem({ clock, log, ...(deps.observer ? { observer: deps.observer } : {}) });
    this.#outbox = deps.outbox ? new Outbox(this.#system, { db, clock, log }, deps.outbox) : null;
    this.#capacity = this.#system.single('capacity', this.#capacityBehaviour(), SINGLE);
    this.#sandboxes = this.#system.single('sandboxes', this.#sandboxesBehaviour(), SINGLE);
    const reapTexts = { failed: texts.error, deadline: texts.deadline };
    const reaper = new ReaperBehaviour({ db, log, host, texts: reapTexts, takenBack: (turn) => this.#takenBack(turn) });
    this.#reaper = this.#system.single('reaper', reaper, { ...SINGLE, mailboxMax: 10 });
    const renewals = new Renewals(db, clock, times.leaseTtlMs);
    const { changes, partials, maxFollowUps } = deps;
    const entryWrites = createEntryWrites({
      ...{ db, changes, partials, graceMs: times.graceMs },
      changed: (change) => this.changed(change),
    });
    const behaviour = new ConversationBehaviour({
      ...{ db, clock, log, changes, partials, renewals, times, maxFollowUps, texts, active: this.#active, turns: this.#turns },
      capacity: {
        offer: (pull) => this.#claiming && this.#capacity.tell({ type: 'Offer', pull }),
        judge: (conversationId) => this.#claiming && this.#capacity.tell({ type: 'Judge', conversationId }),
        slotsChanged: () => this.#capacity.tell({ type: 'SlotsChanged' }),
      },
      claiming: () => this.#claiming,
      sandboxes: {
        wanted: (conversationId) => this.#claiming && this.#sandboxes.tell({ type: 'Wanted', conversationId }),
        idle: () => this.#claiming && this.#sandboxes.tell({ type: 'Idle' }),
      },
      self: { refresh: (id) => this.#conversations.tell(id, { type: 'Changed', version: 0 }) },
    });
    this.#conversations = this.#system.kind('conversation', behaviour, CONVERSATIONS);
    this.runtime = createRuntime({
      ...{ db, clock, turns: this.#turns, conversations: this.#conversations, entryWrites, buildContext: deps.buildContext },
      parked: this.#parked,
      withdrawn: (pull) => this.#capacity.tell({ type: 'Withdraw', pull }),
      claiming: () => this.#claiming,
    });
  }

  #capacityBehaviour(): CapacityBehaviour {
    const { db, log, times, texts, host } = this.#deps;
    return new CapacityBehaviour({
      ...{ db, log, hostId: host.id, rules: { ...times, refusals: texts.refusals } },
      refused: (turn) => this.#refused(turn),
      claimSoon: () => this.#capacity.tell({ type: 'Claim' }),
      unsure: (conversationId) => this.#conversations.tellIfActive(conversationId, { type: 'Changed', version: Number.MAX_SAFE_INTEGER }),
      granted: (grant, delivered) => {
        this.#conversations.tell(grant.conversationId, { type: 'TurnClaimed', grant, delivered });
        this.#publishGrant(grant);
      },
      grantedElsewhere: (grant) => {
        this.#conversations.tellIfActive(grant.conversationId, { type: 'Changed', version: grant.version });
        this.#publishGrant(grant);
      },
    });
  }

  #publishGrant({ workspaceId, accountId, conversationId, version, turnId }: Grant): void {
    const change = { workspaceId, accountId, conversationId, version, turnIds: [turnId], entryIds: [], sealedRunIds: [], slots: true };
    this.#deps.changes.publish(change);
  }

  #sandboxesBehaviour(): SandboxesBehaviour {
    const { db, log, sandboxHost, host, sandboxesMax, sandboxIdleMs, texts } = this.#deps;
    sandboxHost.onExit((sandboxId: SandboxId, how) => this.#sandboxes.tell({ type: 'RunnerExited', sandboxId, how }));
    return new SandboxesBehaviour({
      ...{ db, log, host: sandboxHost, hostId: host.id, sandboxesMax, idleMs: sandboxIdleMs },
      isPulling: (sandboxId) => [...this.#parked].some((pull) => pull.open && pull.sandbox.sandboxId === sandboxId),
      lookSoon: () => this.#sandboxes.tell({ type: 'Look' }),
      startEnded: (how) => this.#sandboxes.tell(how),
      reapNow: () => this.#reaper.tell({ type: 'Sweep' }),
      notStarted: texts.notStarted,
      gaveUp: (turn) => this.#refused(turn),
      startTried: (outcome) => this.#turns.sandboxStart(outcome),
    });
  }

  #refused({ workspaceId, accountId, conversationId, version, turnId, runId, surface, ageMs: durationMs }: EndedTurn): void {
    const names = { conversationId, turnId, runId };
    this.#turns.turnEnded({ ...names, surface, outcome: 'FAILED', queueWaitMs: null, firstOutputMs: null, durationMs, ageMs: durationMs });
    const change = { workspaceId, accountId, conversationId, version, turnIds: [turnId], entryIds: [], sealedRunIds: [], slots: true };
    this.#deps.changes.publish(change);
    // Also when its actor is not in memory, and it looks at the rows again: the conversation's next question may be waiting.
    for (const known of [version, 0]) this.#conversations.tell(conversationId, { type: 'Changed', version: known });
  }

  #takenBack(turn: TakenBack): void {
    const { workspaceId, accountId, conversationId, version, turnId, runId } = turn;
    this.#deps.partials.clear(conversationId, turnId, turn.epoch);
    this.#turns.attemptTakenBack(turn.cause);
    const names = { conversationId, turnId, runId };
    this.#turns.attemptEnded({ ...names, epoch: turn.epoch, how: turn.cause, ageMs: turn.timing.attemptMs });
    if (turn.status !== 'QUEUED') this.#turns.turnEnded({ ...names, ...turn.timing, outcome: turn.status, firstOutputMs: null });
    this.#deps.changes.publish({
      workspaceId,
      accountId,
      conversationId,
      version,
      turnIds: [turnId],
      entryIds: [],
      sealedRunIds: [runId],
      slots: true,
    });
    this.#conversations.tellIfActive(conversationId, { type: 'Changed', version });
    this.#capacity.tell({ type: 'SlotsChanged' });
    this.#sandboxes.tell({ type: 'Look' });
  }

  start(): void {
    this.#timers.push(
      this.#deps.clock.every(this.#deps.sweepMs, () => {
        this.#reaper.tell({ type: 'Sweep' });
        if (!this.#claiming) return;
        this.#outbox?.look();
        this.#capacity.tell({ type: 'Sweep' });
        this.#sandboxes.tell({ type: 'Sweep' });
      }),
    );
    this.#sandboxes.tell({ type: 'Look' });
  }

  changed(change: Change): void {
    this.#conversations.tellIfActive(change.conversationId, { type: 'Changed', version: change.version });
    if (change.slots && this.#claiming) this.#capacity.tell({ type: 'SlotsChanged' });
  }

  entriesErased(conversations: readonly ChangedConversation[]): void {
    const { changes, partials } = this.#deps;
    tellChanged({ changes, partials, changed: (change) => this.changed(change) }, conversations);
    this.#turns.erased('content');
  }

  activeConversationIds(): readonly ConversationId[] {
    return [...this.#active];
  }

  views(limit?: number): readonly ActorView[] {
    return this.#system.list(limit);
  }

  turnEnded(turn: EndedTurn): void {
    this.#refused(turn);
  }

  reap(): Promise<number> {
    return this.#reaper.ask({ type: 'Sweep' });
  }

  stopClaiming(): void {
    this.#claiming = false;
    for (const pull of this.#parked) pull.answer(null);
  }

  async drain(graceMs: number): Promise<boolean> {
    for (const timer of this.#timers) timer.cancel();
    return this.#system.drain(graceMs);
  }
}

/** The end of a turn of Slack has enqueued its post. (The next sweep finds what this server did not see end.) */
function turnsToldTo(turns: TurnObserver, slackEnded: () => void): TurnObserver {
  return {
    ...turns,
    turnEnded(turn) {
      turns.turnEnded(turn);
      if (turn.surface === 'slack') slackEnded();
    },
  };
}

/** Builds the supervision tree; `start` sets it going. */
export function createActors(deps: ActorsDeps): Actors {
  return new Tree(deps);
}
