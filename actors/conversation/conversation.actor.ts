/**
 * Owns: the ConversationActor: one per active conversation, it serializes what happens to it on this server.
 * State is rebuilt from rows at activation and after a crash. Another server may host the same conversation's actor at the same time:
 * a write names the version it was decided on, and the loser loads again and decides again.
 * Does not own: claims (CapacityActor), starting sandboxes (SandboxesActor), taking back (ReaperActor).
 */
import { type ConversationRows, loadConversation } from '../../db/ledger/conversation.ts';
import { checkAttempt } from '../../db/ledger/fence.ts';
import { uncalledClaim } from '../../db/ledger/sandboxes.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import type { Behaviour, CommandContext } from '../kernel/index.ts';
import type { ConversationCommand, ConversationReply, LeaseReply, PartialReply } from './commands.ts';
import { isClaimable } from './decide.ts';
import type { ConversationDeps } from './deps.ts';
import type { ParkedPull } from './pulls.ts';
import type { ConversationState } from './state.ts';
import { endRun, endTurn, learn, stopTurn, submitQuestion } from './writes.ts';

export class ConversationBehaviour implements Behaviour<ConversationState, ConversationCommand, ConversationReply> {
  readonly #deps: ConversationDeps;

  constructor(deps: ConversationDeps) {
    this.#deps = deps;
  }

  async load(id: string): Promise<ConversationState> {
    const rows = await this.#read(id);
    this.#deps.active.add(rows.id);
    return { id: rows.id, rows, parked: new Map() };
  }

  async handle(
    state: ConversationState,
    command: ConversationCommand,
    context: CommandContext,
  ): Promise<{ state: ConversationState; reply: ConversationReply }> {
    state.rows ??= await this.#read(context.id);
    const reply = await this.#answer(state, command, context);
    this.#offer(state, context.id);
    return { state, reply };
  }

  mayPassivate(state: ConversationState): boolean {
    return state.parked.size === 0;
  }

  /** A dropped state forgets its pulls: they are answered empty and the sandboxes pull again. */
  dropped(state: ConversationState): void {
    this.#deps.active.delete(state.id);
    for (const pull of state.parked.values()) pull.answer(null);
    state.parked.clear();
  }

  #answer(state: ConversationState, command: ConversationCommand, context: CommandContext): Promise<ConversationReply> | ConversationReply {
    const session = { deps: this.#deps, state, reload: async () => (state.rows = await this.#read(context.id)) };
    switch (command.type) {
      case 'SubmitQuestion':
        return submitQuestion(session, command.input);
      case 'StopTurn':
        return stopTurn(session, command.turnId);
      case 'EndTurn':
        return endTurn(session, command.attempt, command.end);
      case 'EndRun':
        return endRun(session, command.attempt, command.end);
      case 'ClaimNext':
        return this.#park(state, command.pull);
      case 'AbandonPull':
        if (state.parked.get(command.pull.sandbox.sandboxId) === command.pull) {
          state.parked.delete(command.pull.sandbox.sandboxId);
          this.#deps.capacity.withdraw(command.pull.sandbox);
        }
        return { kind: 'noted' };
      case 'TurnClaimed':
        return this.#claimed(state, command.grant);
      case 'RenewLease':
        return this.#renew(command.attempt);
      case 'PublishPartial':
        return this.#partial(state, command.attempt, command.partial);
      case 'Changed':
        if (state.rows && state.rows.version < command.version) state.rows = null;
        return { kind: 'noted' };
    }
  }

  async #read(id: string): Promise<ConversationRows> {
    const rows = await loadConversation(this.#deps.db, id as ConversationId);
    if (!rows) throw new RuntimeFault('CONVERSATION_NOT_FOUND', 'There is no such conversation.');
    return rows;
  }

  /** After each command: a claimable turn and a parked pull go to the CapacityActor; a claimable turn without a pull needs a sandbox. */
  #offer(state: ConversationState, id: string): void {
    if (state.rows === null) {
      // Changed elsewhere. Only a parked pull makes it worth to look now: a question may have been written on another server.
      if (state.parked.size > 0) this.#deps.self.refresh(id);
      return;
    }
    if (!isClaimable(state.rows)) return;
    const [pull] = state.parked.values();
    if (pull) this.#deps.capacity.offer(pull.sandbox);
    else this.#deps.sandboxes.wanted(state.rows.id);
  }

  async #park(state: ConversationState, pull: ParkedPull): Promise<ConversationReply> {
    const { sandboxId } = pull.sandbox;
    state.parked.get(sandboxId)?.answer(null); // a sandbox has one pull; the older one lost its client
    if (state.rows?.leased?.sandboxId === sandboxId && !state.rows.leased.called) {
      const claim = await uncalledClaim(this.#deps.db, sandboxId);
      if (claim) {
        const { leaseTtlMs, deadlineMs } = claim;
        const run = {
          id: claim.runId,
          kind: 'TURN',
          epoch: claim.epoch,
          leaseTtlMs,
          renewEveryMs: LIMITS.renewEveryMs,
          deadlineMs,
        } as const;
        pull.answer(run);
        return { kind: 'run', run };
      }
    }
    state.parked.set(sandboxId, pull);
    return { kind: 'parked' };
  }

  #claimed(state: ConversationState, grant: Extract<ConversationCommand, { type: 'TurnClaimed' }>['grant']): ConversationReply {
    const { version, turnId, runId, epoch, sandboxId } = grant;
    learn(this.#deps, state, { type: 'claimed', version, turnId, runId, epoch, sandboxId });
    return { kind: 'noted' };
  }

  async #renew(attempt: Extract<ConversationCommand, { type: 'RenewLease' }>['attempt']): Promise<LeaseReply> {
    const state = await this.#deps.renewals.renew({ runId: attempt.runId, epoch: attempt.epoch, sandboxId: attempt.sandbox.sandboxId });
    if (!state) return { kind: 'lost' };
    const { leaseTtlMs, deadlineMs, stop } = state;
    return { kind: 'renewed', leaseTtlMs, deadlineMs, ...(stop ? { stop } : {}) };
  }

  async #partial(
    state: ConversationState,
    attempt: Extract<ConversationCommand, { type: 'PublishPartial' }>['attempt'],
    partial: Extract<ConversationCommand, { type: 'PublishPartial' }>['partial'],
  ): Promise<PartialReply> {
    const { runId, epoch, sandbox } = attempt;
    const now = await checkAttempt(this.#deps.db, { runId, epoch, sandboxId: sandbox.sandboxId });
    if (!now) return { kind: 'lost' };
    if (now.stop) return { kind: 'stopped', stop: now.stop };
    const turnId = state.rows?.leased?.runId === runId ? state.rows.leased.turnId : null;
    if (turnId === null || state.rows === null) {
      state.rows = null; // the cache is behind the database: the next command reads it again
      return { kind: 'taken', resync: true };
    }
    const { workspaceId, accountId, id: conversationId } = state.rows;
    const { offset, text, stage, full = false } = partial;
    const taken = this.#deps.partials.publish({ workspaceId, accountId, conversationId, turnId, epoch, offset, text, stage, full });
    return taken === 'resync' ? { kind: 'taken', resync: true } : { kind: 'taken' };
  }
}
