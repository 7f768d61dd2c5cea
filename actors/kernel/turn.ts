/**
 * Owns: one turn of an actor, from its envelope to the outcome, and every call into a behaviour.
 * Does not own: which actor runs, when it leaves memory (registry.ts).
 * Invariants: a turn never rejects, so nact never sees an exception; a crash drops the state before the caller hears of it; each loaded
 * state is dropped exactly once; the command runs in the async context of its caller and everything else in the neutral one.
 */
import type { RuntimeFault } from '../../src/kernel/faults.ts';
import { busyFault, crashFault, crashKind } from './faults.ts';
import type { Counters, KindDefinition, Services } from './services.ts';
import type { Envelope, Slot } from './slot.ts';
import type { AnyCommand, DropReason } from './types.ts';
import { Work, WorkWatch } from './work.ts';

export type Outcome<Reply> = { ok: true; reply: Reply } | { ok: false; fault: RuntimeFault };

export class TurnRunner<State, Command extends AnyCommand, Reply> {
  readonly watch: WorkWatch<Slot<State, Command, Reply>>;
  readonly #kind: KindDefinition<State, Command, Reply>;
  readonly #services: Services;
  readonly #counters: Counters;

  constructor(kind: KindDefinition<State, Command, Reply>, services: Services, counters: Counters) {
    this.#kind = kind;
    this.#services = services;
    this.#counters = counters;
    this.watch = new WorkWatch(services.clock, kind.options.handlerMs, (slot) => this.#overran(slot));
  }

  /** Runs one command, its load included if there is no state. Never rejects. */
  async run(slot: Slot<State, Command, Reply>, envelope: Envelope<Command, Reply>): Promise<Outcome<Reply>> {
    const { clock, observer, insideCommand } = this.#services;
    const startedMs = clock.monotonicMs();
    if (startedMs > envelope.expiresMs) return this.expire(envelope, startedMs);
    const work = new Work({ id: slot.id, type: envelope.command.type }, clock.now(), startedMs);
    slot.work = work;
    this.watch.started(slot);
    let outcome: Outcome<Reply>;
    try {
      const inContext = () => insideCommand.run(true, () => this.#work(slot, envelope.command));
      outcome = { ok: true, reply: await envelope.context.runInAsyncScope(inContext) };
    } catch (error) {
      outcome = { ok: false, fault: this.#crash(slot, work, error) };
    }
    this.watch.ended(slot);
    slot.work = null;
    slot.commandsHandled += 1;
    this.#counters.commands += 1;
    const workMs = clock.monotonicMs() - startedMs;
    const waitMs = startedMs - envelope.acceptedMs;
    observer.commandHandled(this.#kind.name, work.type, { waitMs, workMs, outcome: outcome.ok ? 'ok' : 'crash' });
    return outcome;
  }

  /** The outcome of a command that waited too long: it did not run. */
  expire(envelope: Envelope<Command, Reply>, nowMs: number): { ok: false; fault: RuntimeFault } {
    this.#counters.expired += 1;
    const timing = { waitMs: nowMs - envelope.acceptedMs, workMs: 0, outcome: 'expired' } as const;
    this.#services.observer.commandHandled(this.#kind.name, envelope.command.type, timing);
    return { ok: false, fault: busyFault() };
  }

  /** False when the behaviour wants to keep the idle actor. */
  mayPassivate(slot: Slot<State, Command, Reply>): boolean {
    const { behaviour } = this.#kind;
    if (!slot.loaded || behaviour.mayPassivate === undefined) return true;
    try {
      return behaviour.mayPassivate(slot.state);
    } catch (error) {
      this.#report(slot, 'mayPassivate', error);
      return false;
    }
  }

  /** Takes the state out of memory and tells the behaviour. Without a state: nothing to do. */
  forget(slot: Slot<State, Command, Reply>, reason: DropReason): void {
    if (!slot.loaded) return;
    const state = slot.unload();
    try {
      this.#kind.behaviour.dropped?.(state, reason);
    } catch (error) {
      this.#report(slot, 'dropped', error);
    }
  }

  async #work(slot: Slot<State, Command, Reply>, command: Command): Promise<Reply> {
    const { behaviour } = this.#kind;
    const work = slot.work as Work;
    if (!slot.loaded) {
      slot.state = await behaviour.load(slot.id, work.signal);
      this.#counters.activations += 1;
      this.#services.observer.activated(this.#kind.name, this.#services.clock.monotonicMs() - work.startedMs);
    }
    const result = await behaviour.handle(slot.state, command, work);
    slot.state = result.state;
    return result.reply;
  }

  #crash(slot: Slot<State, Command, Reply>, work: Work, error: unknown): RuntimeFault {
    this.#report(slot, work.type, error);
    this.forget(slot, 'crash');
    return crashFault(error, work.aborted);
  }

  /** `at`: the command's type or the callback that threw. */
  #report(slot: Slot<State, Command, Reply>, at: string, error: unknown): void {
    slot.lastFault = crashKind(error);
    this.#counters.crashes += 1;
    this.#services.log.error('actor.crashed', { kind: this.#kind.name, id: slot.id, command: at }, error);
    this.#services.observer.crashed(this.#kind.name, slot.lastFault);
  }

  #overran(slot: Slot<State, Command, Reply>): void {
    const command = slot.work?.type ?? 'none';
    slot.lastFault = 'HandlerOverrun';
    this.#counters.overruns += 1;
    this.#services.log.warn('actor.overran', { kind: this.#kind.name, id: slot.id, command, handlerMs: this.#kind.options.handlerMs });
    this.#services.observer.overran(this.#kind.name, command);
  }
}
