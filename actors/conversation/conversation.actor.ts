/**
 * Owns: the ConversationActor: one per active conversation, it serializes what happens to it on this server.
 * State is rebuilt from rows at activation and after a crash. Another server may host the same conversation's actor at the same time:
 * a write names the version it was decided on, and the loser loads again and decides again.
 * Does not own: claims (CapacityActor), starting sandboxes (SandboxesActor), taking back (ReaperActor).
 */
import { type ConversationRows, loadConversation } from '../../db/ledger/conversation.ts';
import { checkAttempt } from '../../db/ledger/fence.ts';
import { uncalledClaim } from '../../db/ledger/sandboxes.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import type { Behaviour, CommandContext } from '../kernel/index.ts';
import type { ConversationCommand, ConversationReply, LeaseReply, PartialReply } from './commands.ts';
import { evolve, isClaimable, uncalledLease } from './decide.ts';
import type { ConversationDeps } from './deps.ts';
import { openPull, type ParkedPull, toRun } from './pulls.ts';
import type { ConversationState } from './state.ts';
import { endRun, endTurn, handBack, type Session, stopTurn, submitQuestion } from './writes.ts';

export class ConversationBehaviour implements Behaviour<ConversationState, ConversationCommand, ConversationReply> {
  readonly #deps: ConversationDeps;

  constructor(deps: ConversationDeps) {
    this.#deps = deps;
  }

  async load(id: string): Promise<ConversationState> {
    const rows = await this.#read(id);
    this.#deps.active.add(rows.id);
    return { id: rows.id, rows, parked: new Map(), firstWords: null };
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
    return [...state.parked.values()].every((pull) => !pull.open);
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
      case 'TurnClaimed':
        return this.#claimed(session, command);
      case 'RenewLease':
        return this.#renew(command.attempt);
      case 'PublishPartial':
        return this.#partial(state, command.attempt, command.partial);
      case 'Changed':
        return this.#changed(state, command.version);
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
      if (openPull(state.parked)) this.#deps.self.refresh(id);
      return;
    }
    const pull = openPull(state.parked);
    if (!isClaimable(state.rows)) {
      if (pull) this.#deps.sandboxes.idle();
    } else if (pull) this.#deps.capacity.offer(pull);
    else {
      this.#deps.capacity.judge(state.rows.id);
      this.#deps.sandboxes.wanted(state.rows.id);
    }
  }

  async #park(state: ConversationState, pull: ParkedPull): Promise<ConversationReply> {
    const { sandboxId } = pull.sandbox;
    state.parked.get(sandboxId)?.answer(null); // a sandbox has one pull; the older one lost its client
    state.parked.delete(sandboxId);
    if (!pull.open) return { kind: 'parked' }; // given up while it waited in the mailbox
    state.parked.set(sandboxId, pull);
    await this.#giveAgain(state);
    return { kind: 'parked' };
  }

  /** The sandbox of an outstanding claim that has made no call gets it again: the reply to its earlier pull was lost. */
  async #giveAgain(state: ConversationState): Promise<void> {
    const leased = state.rows && uncalledLease(state.rows);
    const pull = leased && state.parked.get(leased.sandboxId);
    if (!state.rows || !leased || !pull?.open) return;
    const claim = await uncalledClaim(this.#deps.db, leased.sandboxId);
    if (claim) pull.answer(toRun(claim, claim));
    else state.rows = { ...state.rows, leased: { ...leased, called: true } };
  }

  async #claimed(
    session: Session,
    { grant, delivered }: Extract<ConversationCommand, { type: 'TurnClaimed' }>,
  ): Promise<ConversationReply> {
    const { state } = session;
    const { version, turnId, runId, epoch, sandboxId, workspaceId, conversationId } = grant;
    state.rows = state.rows && evolve(state.rows, { type: 'claimed', version, turnId, runId, epoch, sandboxId });
    if (delivered) return { kind: 'noted' };
    if (this.#deps.claiming()) await this.#giveAgain(state);
    else await handBack(session, { sandbox: { sandboxId, workspaceId, conversationId }, runId, epoch });
    return { kind: 'noted' };
  }

  async #changed(state: ConversationState, version: number): Promise<ConversationReply> {
    if (state.rows && state.rows.version < version) state.rows = null;
    else await this.#giveAgain(state);
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
    const { offset, text, stage, full = false, nth } = partial;
    const known = state.firstWords?.runId === runId && state.firstWords.epoch === epoch;
    if (text !== '' && !known) state.firstWords = { runId, epoch, atMs: this.#deps.clock.monotonicMs() };
    const report = { epoch, offset, text, stage, full, ...(nth === undefined ? {} : { nth }) };
    const taken = this.#deps.partials.publish({ workspaceId, accountId, conversationId, turnId, ...report });
    return taken === 'resync' ? { kind: 'taken', resync: true } : { kind: 'taken' };
  }
}
