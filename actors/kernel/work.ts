/**
 * Owns: the command that an actor runs right now, its signal, and the watch over commands that run too long.
 * The deadline is cooperative: the signal aborts, the command is reported once, and the actor waits until the handler ends.
 * Cost: an AbortController exists only for a command that looks at its signal (an AbortSignal.timeout for each command was most of the
 * cost of a command), and one timer serves all actors of a kind.
 */
import type { Clock, Timer } from '../../src/kernel/clock.ts';
import type { RuntimeFault } from '../../src/kernel/faults.ts';
import { overrunFault } from './faults.ts';
import type { CommandContext } from './types.ts';

export class Work implements CommandContext {
  readonly id: string;
  readonly type: string;
  readonly now: number;
  readonly startedMs: number;
  #controller: AbortController | null = null;
  #aborted: RuntimeFault | null = null;

  constructor(subject: { id: string; type: string }, now: number, startedMs: number) {
    this.id = subject.id;
    this.type = subject.type;
    this.now = now;
    this.startedMs = startedMs;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#aborted !== null) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  /** Why the signal aborted, null while it did not. */
  get aborted(): RuntimeFault | null {
    return this.#aborted;
  }

  abort(reason: RuntimeFault): void {
    this.#aborted ??= reason;
    this.#controller?.abort(this.#aborted);
  }
}

/** Finds the commands of one kind that run longer than `handlerMs`. */
export class WorkWatch<Item extends { readonly work: Work | null }> {
  readonly #clock: Clock;
  readonly #handlerMs: number;
  readonly #overran: (item: Item) => void;
  /** In order of start, so that the first one is due first. */
  readonly #running = new Set<Item>();
  readonly #overdue = new Set<Item>();
  #timer: Timer | null = null;

  constructor(clock: Clock, handlerMs: number, overran: (item: Item) => void) {
    this.#clock = clock;
    this.#handlerMs = handlerMs;
    this.#overran = overran;
  }

  /** Those that run longer than they may. */
  get overdue(): Iterable<Item> {
    return this.#overdue;
  }

  started(item: Item): void {
    this.#running.add(item);
    if (this.#timer === null) this.#arm(this.#handlerMs);
  }

  ended(item: Item): void {
    if (!this.#running.delete(item)) this.#overdue.delete(item);
  }

  /** Aborts all that runs, as the last word of a drain. Stops the timer. */
  giveUp(reason: RuntimeFault): void {
    this.close();
    for (const item of [...this.#running, ...this.#overdue]) item.work?.abort(reason);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#clock.after(delayMs, () => this.#look());
  }

  #look(): void {
    this.#timer = null;
    const nowMs = this.#clock.monotonicMs();
    for (const item of this.#running) {
      const dueInMs = (item.work?.startedMs ?? nowMs) + this.#handlerMs - nowMs;
      if (dueInMs > 0) {
        this.#arm(dueInMs);
        return;
      }
      this.#running.delete(item);
      this.#overdue.add(item);
      item.work?.abort(overrunFault());
      this.#overran(item);
    }
  }
}
