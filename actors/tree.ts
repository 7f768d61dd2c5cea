/**
 * Owns: how the actors are wired to each other, their bounds, their timers, and `Runtime`, the door that HTTP calls.
 * Does not own: what an actor does (its own folder), the order of a shutdown (main.ts).
 */

import type { Grant, LeaseTimes } from '../db/ledger/claim.ts';
import { findOrCreateMain, findTurn, ownsConversation } from '../db/ledger/conversation.ts';
import type { ChangedConversation } from '../db/ledger/erase.ts';
import { noteCall } from '../db/ledger/fence.ts';
import type { TakenBack } from '../db/ledger/reap.ts';
import type { EndedTurn } from '../db/ledger/refuse.ts';
import type { Database } from '../db/pool.ts';
import type { ContextResponse, TurnEndRequest } from '../src/contract/agent.ts';
import type { Change } from '../src/contract/changes.ts';
import type { Clock, Timer } from '../src/kernel/clock.ts';
import { RuntimeFault } from '../src/kernel/faults.ts';
import type { ConversationId, HostId, RunId, SandboxId } from '../src/kernel/ids.ts';
import type { Log } from '../src/kernel/log.ts';
import { CapacityBehaviour, type CapacityCommand } from './capacity/capacity.actor.ts';
import type { ConversationCommand, ConversationReply, LeaseReply } from './conversation/commands.ts';
import { ConversationBehaviour } from './conversation/conversation.actor.ts';
import { ParkedPull } from './conversation/pulls.ts';
import { Renewals } from './conversation/renewals.ts';
import { createEntryWrites, tellChanged } from './entry-writes.ts';
import type { FailureTexts } from './failure-texts.ts';
import { type ActorKind, ActorSystem, type ActorView, type KernelObserver, type SingleActor } from './kernel/index.ts';
import { Outbox, type OutboxOptions } from './outbox/index.ts';
import type { ChangeSink, PartialSink, SandboxHost, TurnObserver } from './ports.ts';
import { ReaperBehaviour, type ReaperCommand } from './reaper/reaper.actor.ts';
import type { Attempt, EntryWrites, QuestionInput, Runtime, SubmitReply } from './runtime.ts';
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
/** Remembered main conversations; a full book starts anew. */
const MAINS_MAX = 20_000;
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

type Conversations = ActorKind<ConversationCommand, ConversationReply, 'conversation'>;

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
  /** Main conversations by person. One that turns out to be gone (erased, merged) is looked up again. */
  readonly #mains = new Map<string, ConversationId>();
  readonly #timers: Timer[] = [];
  #claiming = true;

  readonly #turns: TurnObserver;
  readonly #entryWrites: EntryWrites;

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
    this.#entryWrites = createEntryWrites({
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

  readonly runtime: Runtime = {
    submitQuestion: async (input) => {
      const reply = await this.#submit(input);
      // The person's main conversation is another one by now: the remembered one was erased, or is somebody else's.
      const forgotten = reply.kind === 'no-conversation' && input.conversationId === null && this.#mains.delete(personOf(input));
      return forgotten ? this.#submit(input) : reply;
    },
    stopTurn: async (member, turnId) => {
      const turn = await findTurn(this.#deps.db, member, turnId);
      if (!turn) return { kind: 'no-turn' };
      if (turn.status === 'STOPPED') return { kind: 'stopped' };
      if (turn.status === 'DONE' || turn.status === 'FAILED') return { kind: 'already-ended' };
      return this.#ask(turn.conversationId, { type: 'StopTurn', turnId });
    },
    claimNext: async (sandbox, waitMs, signal) => {
      if (!this.#claiming || signal.aborted) return null;
      const pull = new ParkedPull(sandbox, this.#deps.clock, waitMs);
      const abandon = () => pull.answer(null);
      signal.addEventListener('abort', abandon, { once: true });
      this.#parked.add(pull);
      try {
        // A pull that was given up is answered at once, also while its command still waits in the mailbox.
        const parked = this.#ask(sandbox.conversationId, { type: 'ClaimNext', pull }).then(() => pull.answered);
        return await Promise.race([pull.answered, parked]);
      } finally {
        abandon();
        this.#parked.delete(pull);
        this.#capacity.tell({ type: 'Withdraw', pull });
        signal.removeEventListener('abort', abandon);
      }
    },
    readContext: async (attempt) => {
      // Read beside the fence, not after it: the context is given out only when the attempt has passed.
      const [state, context] = await Promise.all([noteCall(this.#deps.db, key(attempt)), this.#deps.buildContext(attempt.runId)]);
      if (!state) return { kind: 'lost' };
      if (state.stop) return { kind: 'stopped', stop: state.stop };
      if (context !== 'too-long') return context ? { kind: 'context', context } : { kind: 'lost' };
      const end: TurnEndRequest = { outcome: 'FAILED', reason: 'ERROR', detail: 'context_overflow', entries: [], lastPartial: null };
      await this.#askFor(attempt, { type: 'EndTurn', attempt, end });
      return { kind: 'lost' };
    },
    renewLease: async (attempt) => {
      const reply = await this.#askFor<LeaseReply>(attempt, { type: 'RenewLease', attempt });
      this.#turns.leaseRenewed(reply.kind);
      return reply;
    },
    publishPartial: (attempt, partial) => this.#askFor(attempt, { type: 'PublishPartial', attempt, partial }),
    endTurn: (attempt, end) => this.#askFor(attempt, { type: 'EndTurn', attempt, end }),
    endRun: (attempt, end) => this.#askFor(attempt, { type: 'EndRun', attempt, end }),
    eraseEntry: async (member, id) => {
      await this.#entryWrites.eraseEntry(member, id);
      this.#turns.erased('entry');
    },
    editEntry: (member, id, text) => this.#entryWrites.editEntry(member, id, text),
    voteEntry: (member, id, vote) => this.#entryWrites.voteEntry(member, id, vote),
  };

  async #submit(input: QuestionInput): Promise<SubmitReply> {
    const conversationId = await this.#conversationFor(input);
    if (!conversationId) return { kind: 'no-conversation' };
    return this.#ask<SubmitReply>(conversationId, { type: 'SubmitQuestion', input }).catch((error: unknown) => {
      if (error instanceof RuntimeFault && error.code === 'CONVERSATION_NOT_FOUND') return { kind: 'no-conversation' };
      throw error;
    });
  }

  /** The reply's type belongs to the command; one actor answers all of them. */
  async #ask<Reply>(id: ConversationId, command: ConversationCommand): Promise<Reply> {
    return (await this.#conversations.ask(id, command)) as Reply;
  }

  /** A call of an attempt; one that has lost its run is counted. */
  async #askFor<Reply extends { readonly kind: string }>(attempt: Attempt, command: ConversationCommand): Promise<Reply> {
    const reply = await this.#ask<Reply>(attempt.sandbox.conversationId, command);
    if (reply.kind === 'lost') this.#turns.fencingRejected();
    return reply;
  }

  /** The actor compares the owner itself; the question is only whether an actor may be activated for a stranger's id. */
  async #conversationFor(input: QuestionInput): Promise<ConversationId | null> {
    const { conversationId, workspaceId, accountId } = input;
    if (conversationId !== null) {
      const known = this.#conversations.has(conversationId) || (await ownsConversation(this.#deps.db, input, conversationId));
      return known ? conversationId : null;
    }
    const person = personOf(input);
    const main = this.#mains.get(person) ?? (await findOrCreateMain(this.#deps.db, workspaceId, accountId));
    if (this.#mains.size >= MAINS_MAX) this.#mains.clear();
    this.#mains.set(person, main);
    return main;
  }
}

function personOf({ workspaceId, accountId }: QuestionInput): string {
  return `${workspaceId}/${accountId}`;
}

function key(attempt: Attempt) {
  return { runId: attempt.runId, epoch: attempt.epoch, sandboxId: attempt.sandbox.sandboxId };
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
