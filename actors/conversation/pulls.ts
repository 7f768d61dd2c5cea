/**
 * Owns: a sandbox's parked pull: a promise that is answered once, by a claim, by its time, by its client hanging up, or by a shutdown.
 * Does not own: which turn it gets (the CapacityActor's statement decides).
 */
import type { AgentRun } from '../../src/contract/agent.ts';
import type { Clock, Timer } from '../../src/kernel/clock.ts';
import type { SandboxIdentity } from '../runtime.ts';

export class ParkedPull {
  readonly sandbox: SandboxIdentity;
  readonly answered: Promise<AgentRun | null>;
  #resolve: (run: AgentRun | null) => void = () => {};
  #timer: Timer | undefined;
  #open = true;

  constructor(sandbox: SandboxIdentity, clock: Clock, waitMs: number) {
    this.sandbox = sandbox;
    this.answered = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#timer = clock.after(waitMs, () => this.answer(null));
  }

  /** False once it was answered. */
  get open(): boolean {
    return this.#open;
  }

  /** Answers the pull; a second answer does nothing and returns false. */
  answer(run: AgentRun | null): boolean {
    if (!this.#open) return false;
    this.#open = false;
    this.#timer?.cancel();
    this.#resolve(run);
    return true;
  }
}
