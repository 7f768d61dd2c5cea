/**
 * Owns: the actors of one kind: find-or-activate, both bounds, who leaves memory, and the count of what is pending.
 * Does not own: what a turn does (turn.ts), the order of idle actors (resting.ts), timers and the drain of all kinds (system.ts).
 * Invariants, all kept by doing the check and the act in one synchronous block:
 *   K1 look-up, bound check, pending++ and dispatch are one block, so no command reaches a stopped actor;
 *   K2 an actor is stopped only in a block that saw pending === 0;
 *   K3 one id has at most one slot, and a slot runs one command at a time;
 *   K4 every accepted command is answered at most once, and exactly once unless its handler never ends.
 */
import { AsyncResource } from 'node:async_hooks';
import { drainingFault, refusalFault } from './faults.ts';
import { Resting } from './resting.ts';
import type { Counters, KindDefinition, Services } from './services.ts';
import { Envelope, type ReplyTo, Slot } from './slot.ts';
import { TurnRunner } from './turn.ts';
import type { ActorKind, ActorView, Address, AnyCommand, AskOptions, DropReason, KindStats, RefusalReason } from './types.ts';

/** Actors that one sweep may end before it yields to the event loop: about 10 ms. */
const SWEEP_MAX = 1_000;

export class Registry<State, Command extends AnyCommand, Reply, Kind extends string> implements ActorKind<Command, Reply, Kind> {
  readonly name: Kind;
  readonly #kind: KindDefinition<State, Command, Reply>;
  readonly #services: Services;
  readonly #turns: TurnRunner<State, Command, Reply>;
  readonly #slots = new Map<string, Slot<State, Command, Reply>>();
  readonly #resting: Resting<Slot<State, Command, Reply>>;
  readonly #counters: Counters = { commands: 0, activations: 0, passivations: 0, crashes: 0, refusals: 0, expired: 0, overruns: 0 };
  #pending = 0;
  #closed = false;
  #quiet: (() => void) | null = null;

  constructor(kind: KindDefinition<State, Command, Reply> & { name: Kind }, services: Services) {
    this.name = kind.name;
    this.#kind = kind;
    this.#services = services;
    this.#turns = new TurnRunner(kind, services, this.#counters);
    this.#resting = new Resting((slot) => this.#turns.mayPassivate(slot));
  }

  get size(): number {
    return this.#slots.size;
  }

  get pending(): number {
    return this.#pending;
  }

  get stats(): KindStats {
    return { kind: this.name, actors: this.#slots.size, pending: this.#pending, ...this.#counters };
  }

  get sweepMs(): number {
    return this.#kind.options.sweepMs;
  }

  address(id: string): Address<Command, Kind> {
    return { kind: this.name, id } as Address<Command, Kind>;
  }

  has(id: string): boolean {
    return this.#slots.has(id);
  }

  ask(to: Address<Command, Kind> | string, command: Command, options: AskOptions = {}): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const refusal = this.#accept(this.#idOf(to), this.#envelope(command, options, { resolve, reject }));
      if (refusal !== null) reject(refusalFault(refusal));
    });
  }

  tell(to: Address<Command, Kind> | string, command: Command): boolean {
    return this.#accept(this.#idOf(to), this.#envelope(command, {}, null)) === null;
  }

  askIfActive(to: Address<Command, Kind> | string, command: Command, options: AskOptions = {}): Promise<Reply> | null {
    return this.#isActive(this.#idOf(to)) ? this.ask(to, command, options) : null;
  }

  tellIfActive(to: Address<Command, Kind> | string, command: Command): boolean {
    return this.#isActive(this.#idOf(to)) && this.tell(to, command);
  }

  /**
   * Ends idle actors and answers commands that waited too long behind a handler that hangs. True: there may be more to end.
   * A command behind a handler that works is answered when its turn comes.
   */
  sweep(): boolean {
    const nowMs = this.#services.clock.monotonicMs();
    for (const slot of this.#turns.watch.overdue) {
      for (const envelope of slot.waiting()) {
        if (nowMs > envelope.expiresMs) envelope.refuse(this.#turns.expire(envelope, nowMs).fault);
      }
    }
    let ended = 0;
    for (const slot of this.#resting.expired(nowMs - this.#kind.options.idleMs, SWEEP_MAX)) {
      if (this.#drop(slot, 'idle')) ended += 1;
    }
    return ended >= SWEEP_MAX;
  }

  /** At most `max` views, the busiest first. */
  views(max: number): ActorView[] {
    const clockMs = { monotonic: this.#services.clock.monotonicMs(), wall: this.#services.clock.now() };
    const awake = [...this.#slots.values()].filter((slot) => slot.pending > 0).sort((a, b) => b.pending - a.pending);
    const slots = [...awake.slice(0, max), ...this.#resting.recent(Math.max(0, max - awake.length))];
    return slots.map((slot) => slot.view(this.name, clockMs));
  }

  /** Resolves when nothing is pending. Look again: what resolves first may ask again. */
  quiet(): Promise<void> {
    if (this.#pending === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#quiet = resolve;
    });
  }

  /** Refuses everything from now on and ends each actor that has nothing pending. */
  close(): void {
    this.#closed = true;
    this.#turns.watch.close();
    for (const slot of [...this.#slots.values()]) this.#drop(slot, 'shutdown');
  }

  /** The end of a drain that took too long: what waits is answered DRAINING, what runs is told to abort and may still answer. */
  abandon(): void {
    this.close();
    for (const slot of this.#slots.values()) {
      for (const envelope of slot.waiting()) {
        this.#refused('draining');
        envelope.refuse(drainingFault());
      }
      if (slot.work === null) this.#turns.forget(slot, 'shutdown');
    }
    this.#turns.watch.giveUp(drainingFault());
  }

  #idOf(to: Address<Command, Kind> | string): string {
    if (typeof to === 'string') return to;
    if (to.kind !== this.name) throw new TypeError(`an address of kind ${to.kind} was used with kind ${this.name}`);
    return to.id;
  }

  #isActive(id: string): boolean {
    const slot = this.#slots.get(id);
    return slot !== undefined && (slot.loaded || slot.pending > 0);
  }

  #envelope(command: Command, options: AskOptions, replyTo: ReplyTo<Reply> | null): Envelope<Command, Reply> {
    const acceptedMs = this.#services.clock.monotonicMs();
    const expiresMs = acceptedMs + (options.waitMs ?? this.#kind.options.mailboxWaitMs);
    return new Envelope(command, { acceptedMs, expiresMs }, { context: new AsyncResource('HephCommand'), replyTo });
  }

  /** K1. Null: accepted. */
  #accept(id: string, envelope: Envelope<Command, Reply>): RefusalReason | null {
    const { engine, isDraining, insideCommand, neutral } = this.#services;
    if (this.#closed || (isDraining() && insideCommand.getStore() !== true)) return this.#refused('draining');
    const slot = this.#slots.get(id) ?? this.#activate(id);
    if (slot === null) return this.#refused('actors');
    if (slot.pending >= this.#kind.options.mailboxMax) return this.#refused('mailbox');
    if (slot.pending === 0) this.#resting.wake(slot);
    slot.pending += 1;
    this.#pending += 1;
    slot.push(envelope);
    neutral.runInAsyncScope(engine.dispatch, engine, slot.ref, envelope);
    return null;
  }

  #refused(reason: RefusalReason): RefusalReason {
    this.#counters.refusals += 1;
    this.#services.observer.refused(this.name, reason);
    return reason;
  }

  /** Null: the kind is full and no actor can make room. A `dropped` callback may ask here again, so the map is read after making room. */
  #activate(id: string): Slot<State, Command, Reply> | null {
    if (this.#slots.size >= this.#kind.options.actorsMax) {
      const leaving = this.#resting.nextToLeave();
      if (leaving !== null) this.#drop(leaving, 'evicted');
    }
    const existing = this.#slots.get(id);
    if (existing !== undefined) return existing;
    if (this.#slots.size >= this.#kind.options.actorsMax) return null;
    const { clock, engine } = this.#services;
    const slot = new Slot<State, Command, Reply>(id, clock.monotonicMs(), (owner) => engine.spawn(owner, this.#turn));
    this.#slots.set(id, slot);
    return slot;
  }

  /** Given to nact. Shared by all actors of the kind, and never rejects. */
  readonly #turn = async (slot: Slot<State, Command, Reply>, envelope: Envelope<Command, Reply>): Promise<Slot<State, Command, Reply>> => {
    slot.shift();
    if (envelope.answered) {
      this.#settle(slot);
      return slot;
    }
    const outcome = await this.#turns.run(slot, envelope);
    this.#settle(slot);
    if (outcome.ok) envelope.answer(outcome.reply);
    else envelope.refuse(outcome.fault);
    return slot;
  };

  #settle(slot: Slot<State, Command, Reply>): void {
    slot.lastUsedMs = this.#services.clock.monotonicMs();
    slot.pending -= 1;
    this.#pending -= 1;
    if (slot.pending === 0) {
      this.#resting.rest(slot);
      if (this.#closed) this.#drop(slot, 'shutdown');
    }
    if (this.#pending === 0) {
      this.#quiet?.();
      this.#quiet = null;
    }
  }

  /** K2. False: the actor has something to do and stays. The callback runs last, when the actor is gone. */
  #drop(slot: Slot<State, Command, Reply>, reason: Exclude<DropReason, 'crash'>): boolean {
    if (slot.pending !== 0 || this.#slots.get(slot.id) !== slot) return false;
    const { engine, neutral, observer } = this.#services;
    this.#slots.delete(slot.id);
    this.#resting.wake(slot);
    engine.stop(slot.ref);
    this.#counters.passivations += 1;
    observer.passivated(this.name, reason);
    neutral.runInAsyncScope(() => this.#turns.forget(slot, reason));
    return true;
  }
}
