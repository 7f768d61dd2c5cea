/**
 * Owns: an actor system on a manual clock, with actors whose every step a spec can hold, fail and look at.
 * The rows of these actors are `rows`: a command that writes appends its number to the row of its id, and a load reads it.
 */
import {
  ActorSystem,
  type Behaviour,
  type CommandContext,
  type DropReason,
  type KernelObserver,
  type KindOptions,
} from '../../actors/kernel/index.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { ManualClock } from './manual-clock.ts';

export interface NoteState {
  readonly id: string;
  readonly notes: readonly number[];
  readonly stay: boolean;
}

export type NoteCommand =
  /** Writes `n` and answers the notes that the actor knows of. */
  | { readonly type: 'Write'; readonly n: number }
  /** Runs `during` and answers the notes. */
  | { readonly type: 'Run'; readonly during: (context: CommandContext) => Promise<unknown> }
  /** Whether the actor wants to stay in memory. */
  | { readonly type: 'Stay'; readonly stay: boolean };

export const RIG_OPTIONS: KindOptions = { mailboxMax: 4, actorsMax: 10, idleMs: 60_000, handlerMs: 10_000, sweepMs: 1_000 };

/** A promise that a spec settles. `entered` resolves when somebody waits at it. */
export class Gate {
  readonly #opened = Promise.withResolvers<void>();
  readonly #entered = Promise.withResolvers<void>();

  get entered(): Promise<void> {
    return this.#entered.promise;
  }

  wait = (): Promise<void> => {
    this.#entered.resolve();
    return this.#opened.promise;
  };

  open(): void {
    this.#opened.resolve();
  }
}

export function actorRig(options: Partial<KindOptions> = {}) {
  const clock = new ManualClock();
  const events: string[] = [];
  const observer: KernelObserver = {
    commandHandled: (kind, type, timing) => void events.push(`handled ${kind} ${type} ${timing.outcome} ${timing.waitMs} ${timing.workMs}`),
    activated: (kind, loadMs) => void events.push(`activated ${kind} ${loadMs}`),
    passivated: (kind, reason) => void events.push(`passivated ${kind} ${reason}`),
    crashed: (kind, errorKind) => void events.push(`crashed ${kind} ${errorKind}`),
    refused: (kind, reason) => void events.push(`refused ${kind} ${reason}`),
    overran: (kind, type) => void events.push(`overran ${kind} ${type}`),
  };
  const system = new ActorSystem({ clock, log: silentLog, observer });
  const rows = new Map<string, number[]>();
  const loads: string[] = [];
  const dropped: { id: string; reason: DropReason; notes: readonly number[] }[] = [];
  /** Set by a spec: what the next loads do before they read the row. */
  const hooks = { load: async (_id: string): Promise<void> => undefined, asked: (_id: string): void => undefined };
  const behaviour: Behaviour<NoteState, NoteCommand, readonly number[]> = {
    async load(id) {
      await hooks.load(id);
      loads.push(id);
      return { id, notes: [...(rows.get(id) ?? [])], stay: false };
    },
    async handle(state, command, context) {
      if (command.type === 'Run') await command.during(context);
      if (command.type === 'Stay') return { state: { ...state, stay: command.stay }, reply: state.notes };
      if (command.type !== 'Write') return { state, reply: state.notes };
      const notes = [...state.notes, command.n];
      rows.set(state.id, notes);
      return { state: { ...state, notes }, reply: notes };
    },
    mayPassivate(state) {
      hooks.asked(state.id);
      return !state.stay;
    },
    dropped: (state, reason) => void dropped.push({ id: state.id, reason, notes: state.notes }),
  };
  const notes = system.kind('notes', behaviour, { ...RIG_OPTIONS, ...options });
  const write = (id: string, n: number) => notes.ask(id, { type: 'Write', n });
  const run = (id: string, during: (context: CommandContext) => Promise<unknown>) => notes.ask(id, { type: 'Run', during });
  const stay = (id: string, wish: boolean) => notes.ask(id, { type: 'Stay', stay: wish });
  return { clock, events, system, rows, loads, dropped, hooks, behaviour, notes, write, run, stay };
}

/** The fault that `promise` rejects with. */
export async function faultOf(promise: Promise<unknown> | null): Promise<RuntimeFault> {
  const outcome = await promise?.then(
    () => 'an answer',
    (error: unknown) => error,
  );
  if (outcome instanceof RuntimeFault) return outcome;
  throw new Error(`expected a RuntimeFault, got ${outcome instanceof Error ? outcome.stack : String(outcome)}`);
}

/** The event loop has turned: what could run without waiting has run. */
export function turnOfTheLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
