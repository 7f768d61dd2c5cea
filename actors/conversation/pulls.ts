/**
 * Owns: a sandbox's parked pull: a promise that is answered once, by a claim, by its time, by its client hanging up, or by a shutdown.
 * Does not own: which turn it gets (the CapacityActor's statement decides).
 * Whoever holds a pull asks whether it is open: a closed one is forgotten when it is next looked at, nobody has to say that it closed.
 */
import type { ClaimTimes } from '../../db/ledger/fence.ts';
import type { AgentRun } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import type { Clock, Timer } from '../../src/kernel/clock.ts';
import type { RunId, SandboxId } from '../../src/kernel/ids.ts';
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

/** The newest pull that is open; closed ones are forgotten. The newest, because a conversation has one sandbox and an older one is gone. */
export function openPull(parked: Map<SandboxId, ParkedPull>): ParkedPull | null {
  let newest: ParkedPull | null = null;
  for (const [sandboxId, pull] of parked) {
    if (pull.open) newest = pull;
    else parked.delete(sandboxId);
  }
  return newest;
}

/** A renewal for each 25 of 60 s: one may fail and the next still comes in time. */
const RENEWALS_PER_LEASE = 60 / 25;
/** A lease that is nearly over is not renewed in a storm. */
const RENEW_EVERY_MIN_MS = 500;

/**
 * What a sandbox is told of its claim. Both durations are what is left of them, milliseconds: a lease that is short, or of which little is left
 * when the claim is given again, is renewed earlier.
 */
export function toRun(claim: { readonly runId: RunId; readonly epoch: number }, left: ClaimTimes): AgentRun {
  const { leaseTtlMs, deadlineMs } = left;
  const renewEveryMs = Math.min(LIMITS.renewEveryMs, Math.max(RENEW_EVERY_MIN_MS, Math.floor(leaseTtlMs / RENEWALS_PER_LEASE)));
  return { id: claim.runId, kind: 'TURN', epoch: claim.epoch, leaseTtlMs, renewEveryMs, deadlineMs };
}
