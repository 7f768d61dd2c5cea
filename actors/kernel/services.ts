/**
 * Owns: the names of what a kind needs from its system. Does not own any of it.
 */
import type { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import type { Clock } from '../../src/kernel/clock.ts';
import type { Log } from '../../src/kernel/log.ts';
import type { NactEngine } from './nact-engine.ts';
import type { CheckedOptions } from './options.ts';
import type { AnyCommand, Behaviour, KernelObserver } from './types.ts';

export interface Services {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: KernelObserver;
  readonly engine: NactEngine;
  /** The async context of nobody: nact's loop, timers and callbacks of behaviours run in it. */
  readonly neutral: AsyncResource;
  /** True inside a command: what accepted work asks of other actors is accepted while a drain refuses everything else. */
  readonly insideCommand: AsyncLocalStorage<true>;
  readonly isDraining: () => boolean;
}

export interface KindDefinition<State, Command extends AnyCommand, Reply> {
  readonly name: string;
  readonly behaviour: Behaviour<State, Command, Reply>;
  readonly options: CheckedOptions;
}

/** The counters behind KindStats. */
export interface Counters {
  commands: number;
  activations: number;
  passivations: number;
  crashes: number;
  refusals: number;
  expired: number;
  overruns: number;
}
