/**
 * Owns: the actor system of one server: its kinds, the one sweep timer, the supervision tree, the drain.
 * Does not own: what an actor does, or how many servers there are (two of them may host the same conversation's actor at once).
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import type { Clock } from '../../src/kernel/clock.ts';
import type { Log } from '../../src/kernel/log.ts';
import { drainKinds } from './drain.ts';
import { NactEngine } from './nact-engine.ts';
import { guardObserver } from './observer.ts';
import { checkOptions } from './options.ts';
import { Registry } from './registry.ts';
import type { Services } from './services.ts';
import { singleActor } from './single.ts';
import { Sweeper } from './sweeper.ts';
import type {
  ActorKind,
  ActorView,
  AnyCommand,
  Behaviour,
  KernelObserver,
  KindOptions,
  KindStats,
  SingleActor,
  SingleOptions,
} from './types.ts';

/** Views that `list` returns unless told otherwise. */
const LIST_MAX = 1_000;

export interface ActorSystemOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: KernelObserver;
}

/** What the system needs of a kind, whatever its commands are. */
type AnyKind = Pick<
  Registry<never, never, never, string>,
  'name' | 'stats' | 'pending' | 'sweepMs' | 'sweep' | 'views' | 'quiet' | 'close' | 'abandon'
>;

export class ActorSystem {
  readonly #services: Services;
  readonly #sweeper: Sweeper;
  readonly #kinds = new Map<string, AnyKind>();
  #drained: Promise<boolean> | null = null;

  constructor(options: ActorSystemOptions) {
    this.#services = {
      clock: options.clock,
      log: options.log,
      observer: guardObserver(options.observer, options.log),
      engine: new NactEngine(),
      neutral: new AsyncResource('HephActorSystem'),
      insideCommand: new AsyncLocalStorage(),
      isDraining: () => this.#drained !== null,
    };
    this.#sweeper = new Sweeper(options.clock);
  }

  /** A new kind of actor. Throws when the name is taken, when a bound is not one, or once the system drains. */
  kind<State, Command extends AnyCommand, Reply, Kind extends string = string>(
    name: Kind,
    behaviour: Behaviour<State, Command, Reply>,
    options: KindOptions,
  ): ActorKind<Command, Reply, Kind> {
    if (this.#kinds.has(name)) throw new TypeError(`there is an actor kind ${name} already`);
    if (this.#drained !== null) throw new TypeError(`actor kind ${name} was created while the system drains`);
    const registry = new Registry({ name, behaviour, options: checkOptions(name, options) }, this.#services);
    this.#kinds.set(name, registry);
    this.#services.neutral.runInAsyncScope(() => this.#sweeper.add(registry));
    return registry;
  }

  /** One actor, which loads at its first command and stays until the drain. */
  single<State, Command extends AnyCommand, Reply, Kind extends string = string>(
    name: Kind,
    behaviour: Behaviour<State, Command, Reply>,
    options: SingleOptions,
  ): SingleActor<Command, Reply, Kind> {
    const bounds = { actorsMax: 1, idleMs: Number.POSITIVE_INFINITY, sweepMs: options.handlerMs };
    return singleActor(this.kind(name, behaviour, { ...options, ...bounds }));
  }

  /** The supervision tree: at most `max` actors over all kinds, those with the most to do first. */
  list(max: number = LIST_MAX): ActorView[] {
    const views = [...this.#kinds.values()].flatMap((kind) => kind.views(max));
    views.sort((a, b) => b.mailboxDepth - a.mailboxDepth || b.oldestWaitMs - a.oldestWaitMs || b.lastUsedAt - a.lastUsedAt);
    return views.slice(0, max);
  }

  /** Counters and gauges of each kind, in the order of creation. */
  stats(): KindStats[] {
    return [...this.#kinds.values()].map((kind) => kind.stats);
  }

  /**
   * Refuses new commands with DRAINING, finishes what was accepted and stops all actors: the kinds of `order` first, then the others, last
   * created first. True when all was answered within `withinMs`; otherwise what waits is answered DRAINING and what runs is aborted.
   * A second call returns the result of the first.
   */
  drain(withinMs: number, order: readonly string[] = []): Promise<boolean> {
    // It starts in a microtask, so that `isDraining` holds before the first actor is told that it leaves.
    this.#drained ??= Promise.resolve().then(() => this.#drain(withinMs, order));
    return this.#drained;
  }

  async #drain(withinMs: number, order: readonly string[]): Promise<boolean> {
    const named = order.flatMap((name) => this.#kinds.get(name) ?? []);
    const others = [...this.#kinds.values()].reverse().filter((kind) => !named.includes(kind));
    const complete = await drainKinds([...named, ...others], withinMs, this.#services.clock);
    this.#sweeper.stop();
    this.#services.engine.close();
    return complete;
  }
}
