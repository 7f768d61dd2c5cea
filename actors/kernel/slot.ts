/**
 * Owns: one actor in memory: its state, its counters, and its commands that were accepted and have not started, oldest first.
 * Does not own: the order of execution, which is nact's mailbox. The chain of envelopes shadows it, so that waiting times can be shown and
 * commands that waited too long can be answered even while a handler hangs.
 * Size matters here: an idle actor is one of these and one nact actor.
 */
import type { AsyncResource } from 'node:async_hooks';
import type { RuntimeFault } from '../../src/kernel/faults.ts';
import type { EngineRef } from './nact-engine.ts';
import type { ActorState, ActorView, AnyCommand } from './types.ts';
import type { Work } from './work.ts';

export interface ReplyTo<Reply> {
  resolve(reply: Reply): void;
  reject(fault: RuntimeFault): void;
}

/** A command on its way: one object from acceptance to answer. */
export class Envelope<Command extends AnyCommand, Reply> {
  readonly command: Command;
  readonly acceptedMs: number;
  /** On the monotonic clock. */
  readonly expiresMs: number;
  /** The async context of the caller. The command runs in it, whatever woke the actor. */
  readonly context: AsyncResource;
  next: Envelope<Command, Reply> | null = null;
  /** Null for a command without a reply, and once it was answered. */
  #replyTo: ReplyTo<Reply> | null;
  #answered = false;

  constructor(command: Command, times: { acceptedMs: number; expiresMs: number }, caller: Caller<Reply>) {
    this.command = command;
    this.acceptedMs = times.acceptedMs;
    this.expiresMs = times.expiresMs;
    this.context = caller.context;
    this.#replyTo = caller.replyTo;
  }

  get answered(): boolean {
    return this.#answered;
  }

  answer(reply: Reply): void {
    this.#answered = true;
    this.#replyTo?.resolve(reply);
    this.#replyTo = null;
  }

  refuse(fault: RuntimeFault): void {
    this.#answered = true;
    this.#replyTo?.reject(fault);
    this.#replyTo = null;
  }
}

export interface Caller<Reply> {
  readonly context: AsyncResource;
  readonly replyTo: ReplyTo<Reply> | null;
}

export class Slot<State, Command extends AnyCommand, Reply> {
  readonly id: string;
  readonly ref: EngineRef<Envelope<Command, Reply>>;
  readonly activatedMs: number;
  lastUsedMs: number;
  /** Commands given to nact whose turn has not ended. Zero is the only moment at which the actor may be stopped. */
  pending = 0;
  commandsHandled = 0;
  lastFault: string | null = null;
  work: Work | null = null;
  #loaded = false;
  #state: State | undefined = undefined;
  #oldest: Envelope<Command, Reply> | null = null;
  #newest: Envelope<Command, Reply> | null = null;

  constructor(id: string, nowMs: number, spawn: (slot: Slot<State, Command, Reply>) => EngineRef<Envelope<Command, Reply>>) {
    this.id = id;
    this.activatedMs = nowMs;
    this.lastUsedMs = nowMs;
    this.ref = spawn(this);
  }

  get loaded(): boolean {
    return this.#loaded;
  }

  get state(): State {
    if (!this.#loaded) throw new Error('the state of an actor was read before it was loaded');
    return this.#state as State;
  }

  set state(state: State) {
    this.#loaded = true;
    this.#state = state;
  }

  /** Takes the state out of the slot. */
  unload(): State {
    const state = this.state;
    this.#loaded = false;
    this.#state = undefined;
    return state;
  }

  push(envelope: Envelope<Command, Reply>): void {
    if (this.#newest === null) this.#oldest = envelope;
    else this.#newest.next = envelope;
    this.#newest = envelope;
  }

  /** The oldest envelope leaves the chain: its turn has come. */
  shift(): void {
    this.#oldest = this.#oldest?.next ?? null;
    if (this.#oldest === null) this.#newest = null;
  }

  /** Those that wait and were not answered, oldest first. */
  *waiting(): Generator<Envelope<Command, Reply>> {
    for (let envelope = this.#oldest; envelope !== null; envelope = envelope.next) {
      if (!envelope.answered) yield envelope;
    }
  }

  view(kind: string, clockMs: { monotonic: number; wall: number }): ActorView {
    const wall = (monotonicMs: number) => Math.round(clockMs.wall - (clockMs.monotonic - monotonicMs));
    const oldest = this.waiting().next().value;
    return {
      kind,
      id: this.id,
      state: this.#viewState(),
      mailboxDepth: this.pending,
      oldestWaitMs: oldest ? Math.max(0, Math.round(clockMs.monotonic - oldest.acceptedMs)) : 0,
      lastFault: this.lastFault,
      activatedAt: wall(this.activatedMs),
      lastUsedAt: wall(this.lastUsedMs),
      commandsHandled: this.commandsHandled,
    };
  }

  #viewState(): ActorState {
    if (this.#loaded) return this.pending > 0 ? 'busy' : 'active';
    return this.pending > 0 || this.lastFault === null ? 'activating' : 'failed';
  }
}
