/**
 * Owns: what the rest of Heph sees of the actor kernel: behaviours, addresses, kinds, views, the observer.
 * Does not own: any behaviour of an actor, metrics (src/ops implements the observer), how nact is driven.
 * The actor is a queue and a cache; it is never the guarantee. Constraints and fences in PostgreSQL decide.
 */

/** Every command names its type: the type is a metric label and the discriminant of the behaviour's union. */
export interface AnyCommand {
  readonly type: string;
}

/** Why a state left memory. `crash`: a command of the actor failed; the actor stays and loads again before its next command. */
export type DropReason = 'idle' | 'evicted' | 'crash' | 'shutdown';

/** What a command may know of its surroundings. */
export interface CommandContext {
  readonly id: string;
  /** Aborts when the command (its load included) runs longer than `handlerMs`, or when the server gives up on a drain. Pass it to I/O. */
  readonly signal: AbortSignal;
  /** Wall clock at the start of the command, milliseconds since the Unix epoch. */
  readonly now: number;
}

/**
 * What one kind of actor does. The kernel runs one command of an id at a time, in the order of acceptance.
 * Anything that `load` or `handle` throws is a crash: the caller gets a fault and the state is loaded anew before the next command.
 * An expected loss (lease lost, full) is a reply, not an exception. A handler never asks its own id: it would wait for itself.
 */
export interface Behaviour<State, Command extends AnyCommand, Reply> {
  /** Rebuilds the state from rows. Runs before the first command and before the next one after a crash. */
  load(id: string, signal: AbortSignal): Promise<State>;
  handle(state: State, command: Command, context: CommandContext): Promise<{ state: State; reply: Reply }>;
  /** Synchronous and pure. False keeps the idle actor in memory, for example while it parks a pull. A throw counts as false. */
  mayPassivate?(state: State): boolean;
  /**
   * Synchronous. The state has just left memory: release what it held there, for example answer parked pulls.
   * Called exactly once for each `load` that succeeded, and never while a command of this actor runs.
   */
  dropped?(state: State, reason: DropReason): void;
}

declare const accepts: unique symbol;

/** Where commands of one kind and one id go. Another kind's address, or a command the kind does not know, does not compile. */
export interface Address<Command, Kind extends string = string> {
  readonly kind: Kind;
  readonly id: string;
  /** Exists for the compiler only. */
  readonly [accepts]: (command: Command) => void;
}

export interface KindOptions {
  /** Commands of one actor that are accepted and not yet answered, the running one included. */
  readonly mailboxMax: number;
  /** Actors of this kind in memory. The least recently used idle one makes room. */
  readonly actorsMax: number;
  /** Unused time after which an actor may leave memory. `Infinity`: never. */
  readonly idleMs: number;
  /** Longest run of one command, its load included, before its signal aborts. */
  readonly handlerMs: number;
  /** How often idle actors are looked for. One timer serves all kinds. */
  readonly sweepMs: number;
  /** Longest wait in the mailbox; after that a command is answered BUSY without running. Default: `handlerMs`. */
  readonly mailboxWaitMs?: number;
}

/** A single actor is never idle and never makes room for another. */
export type SingleOptions = Pick<KindOptions, 'mailboxMax' | 'handlerMs' | 'mailboxWaitMs'>;

export interface AskOptions {
  /** Longest wait in the mailbox for this command instead of the kind's. */
  readonly waitMs?: number;
}

/**
 * The actors of one kind, found by id and activated when needed.
 * `ask` rejects with a RuntimeFault: BUSY (retry later) when the mailbox is full, when no actor can make room or when the command waited too
 * long; DRAINING when the server shuts down; otherwise what the behaviour threw, as a fault.
 */
export interface ActorKind<Command extends AnyCommand, Reply, Kind extends string = string> {
  readonly name: Kind;
  /** Actors in memory. */
  readonly size: number;
  readonly stats: KindStats;
  address(id: string): Address<Command, Kind>;
  ask(to: Address<Command, Kind> | string, command: Command, options?: AskOptions): Promise<Reply>;
  /** No reply is wanted: false when the command was refused (the bounds of `ask`). A crash is logged. */
  tell(to: Address<Command, Kind> | string, command: Command): boolean;
  /** As `ask`, but null when the actor holds no state and has nothing to do: its next load reads the rows anyway. */
  askIfActive(to: Address<Command, Kind> | string, command: Command, options?: AskOptions): Promise<Reply> | null;
  /** As `tell`, but false when the actor holds no state and has nothing to do. */
  tellIfActive(to: Address<Command, Kind> | string, command: Command): boolean;
  /** True while the actor is in memory, also when its last load failed. */
  has(id: string): boolean;
}

/** One actor of its own kind: the same rules without an id. */
export interface SingleActor<Command extends AnyCommand, Reply, Kind extends string = string> {
  readonly name: Kind;
  readonly stats: KindStats;
  ask(command: Command, options?: AskOptions): Promise<Reply>;
  tell(command: Command): boolean;
}

/** Counters of one kind since it was created, and two gauges. */
export interface KindStats {
  readonly kind: string;
  /** Gauge: actors in memory. */
  readonly actors: number;
  /** Gauge: commands accepted and not yet answered, over all actors. */
  readonly pending: number;
  readonly commands: number;
  readonly activations: number;
  readonly passivations: number;
  readonly crashes: number;
  readonly refusals: number;
  readonly expired: number;
  readonly overruns: number;
}

/** `activating`: loads its state. `failed`: idle without a state, because the last load or command failed. */
export type ActorState = 'activating' | 'active' | 'busy' | 'failed';

/** One line of the supervision tree. Times are milliseconds since the Unix epoch. */
export interface ActorView {
  readonly kind: string;
  readonly id: string;
  readonly state: ActorState;
  /** Accepted and not yet answered, the running command included. */
  readonly mailboxDepth: number;
  /** Age of the oldest command that waits and has not started. */
  readonly oldestWaitMs: number;
  /** Kind of the last error, no words: `DatabaseError 57014`, `HandlerOverrun`. */
  readonly lastFault: string | null;
  readonly activatedAt: number;
  readonly lastUsedAt: number;
  readonly commandsHandled: number;
}

export type RefusalReason = 'mailbox' | 'actors' | 'draining';

export interface CommandTiming {
  readonly waitMs: number;
  /** Load and handler together; 0 for an expired command. */
  readonly workMs: number;
  /** `expired`: waited too long and was answered BUSY without running. */
  readonly outcome: 'ok' | 'crash' | 'expired';
}

/** What happens in the kernel, for metrics. Called synchronously; a throw is logged and goes no further. */
export interface KernelObserver {
  commandHandled(kind: string, type: string, timing: CommandTiming): void;
  /** A state was loaded. */
  activated(kind: string, loadMs: number): void;
  passivated(kind: string, reason: DropReason): void;
  /** A load, a handler or a callback of a behaviour threw. */
  crashed(kind: string, errorKind: string): void;
  refused(kind: string, reason: RefusalReason): void;
  /** A command runs longer than `handlerMs`. Once per command. */
  overran(kind: string, type: string): void;
}
