/**
 * Owns: `Runtime`, the door that HTTP calls: which actor a call goes to, the person's main conversation, pulls that are parked or given up.
 * Does not own: what an actor decides (conversation/), how the actors are wired (tree.ts).
 */
import { findOrCreateMain, findTurn, ownsConversation } from '../db/ledger/conversation.ts';
import { noteCall } from '../db/ledger/fence.ts';
import type { Database } from '../db/pool.ts';
import type { ContextResponse, TurnEndRequest } from '../src/contract/agent.ts';
import type { Clock } from '../src/kernel/clock.ts';
import { RuntimeFault } from '../src/kernel/faults.ts';
import type { ConversationId, RunId } from '../src/kernel/ids.ts';
import type { ConversationCommand, ConversationReply, LeaseReply } from './conversation/commands.ts';
import { ParkedPull } from './conversation/pulls.ts';
import type { ActorKind } from './kernel/index.ts';
import type { TurnObserver } from './ports.ts';
import type { Attempt, EntryWrites, QuestionInput, Runtime, SubmitReply } from './runtime.ts';

export type Conversations = ActorKind<ConversationCommand, ConversationReply, 'conversation'>;

export interface CallsDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly turns: TurnObserver;
  readonly conversations: Conversations;
  readonly entryWrites: EntryWrites;
  /** As in `ActorsDeps`. */
  readonly buildContext: (runId: RunId) => Promise<ContextResponse | 'too-long' | null>;
  /** The pulls that wait, for a drain that answers them. */
  readonly parked: Set<ParkedPull>;
  /** A pull was answered or given up. */
  withdrawn(pull: ParkedPull): void;
  /** False: no pull is parked any more. */
  claiming(): boolean;
}

/** Remembered main conversations; a full book starts anew. */
const MAINS_MAX = 20_000;

class Calls {
  readonly #deps: CallsDeps;
  /** Main conversations by person. One that turns out to be gone (erased, merged) is looked up again. */
  readonly #mains = new Map<string, ConversationId>();

  constructor(deps: CallsDeps) {
    this.#deps = deps;
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
      if (!this.#deps.claiming() || signal.aborted) return null;
      const pull = new ParkedPull(sandbox, this.#deps.clock, waitMs);
      const abandon = () => pull.answer(null);
      signal.addEventListener('abort', abandon, { once: true });
      this.#deps.parked.add(pull);
      try {
        // A pull that was given up is answered at once, also while its command still waits in the mailbox.
        const parked = this.#ask(sandbox.conversationId, { type: 'ClaimNext', pull }).then(() => pull.answered);
        return await Promise.race([pull.answered, parked]);
      } finally {
        abandon();
        this.#deps.parked.delete(pull);
        this.#deps.withdrawn(pull);
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
      this.#deps.turns.leaseRenewed(reply.kind);
      return reply;
    },
    publishPartial: (attempt, partial) => this.#askFor(attempt, { type: 'PublishPartial', attempt, partial }),
    endTurn: (attempt, end) => this.#askFor(attempt, { type: 'EndTurn', attempt, end }),
    endRun: (attempt, end) => this.#askFor(attempt, { type: 'EndRun', attempt, end }),
    eraseEntry: async (member, id) => {
      await this.#deps.entryWrites.eraseEntry(member, id);
      this.#deps.turns.erased('entry');
    },
    editEntry: (member, id, text) => this.#deps.entryWrites.editEntry(member, id, text),
    voteEntry: (member, id, vote) => this.#deps.entryWrites.voteEntry(member, id, vote),
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
    return (await this.#deps.conversations.ask(id, command)) as Reply;
  }

  /** A call of an attempt; one that has lost its run is counted. */
  async #askFor<Reply extends { readonly kind: string }>(attempt: Attempt, command: ConversationCommand): Promise<Reply> {
    const reply = await this.#ask<Reply>(attempt.sandbox.conversationId, command);
    if (reply.kind === 'lost') this.#deps.turns.fencingRejected();
    return reply;
  }

  /** The actor compares the owner itself; the question is only whether an actor may be activated for a stranger's id. */
  async #conversationFor(input: QuestionInput): Promise<ConversationId | null> {
    const { conversationId, workspaceId, accountId } = input;
    if (conversationId !== null) {
      const known = this.#deps.conversations.has(conversationId) || (await ownsConversation(this.#deps.db, input, conversationId));
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

/** What HTTP calls, over these actors. */
export function createRuntime(deps: CallsDeps): Runtime {
  return new Calls(deps).runtime;
}
