/**
 * Owns: keeping the lease of one run: renewing it in time, and ending the attempt when it is over although nobody could be asked.
 * Does not own: the lease itself. Rule R8: the database judges it; this timer is only ever earlier, because it counts from before the
 * renewal was sent, on a clock that never goes back.
 */
import type { AgentRun } from '../src/contract/agent.ts';
import type { Clock, Timer } from '../src/kernel/clock.ts';
import { RUNNER } from './config.ts';
import type { Fate } from './fate.ts';
import type { RunClient } from './gateway-client.ts';

export interface LeaseOptions {
  readonly run: AgentRun;
  readonly client: RunClient;
  readonly fate: Fate;
  readonly clock: Clock;
}

/** Renews until stopped. The first lease counts from now: from the arrival of the pull's answer. */
export function keepLease(options: LeaseOptions): { stop(): void } {
  const { run, client, fate, clock } = options;
  let over: Timer | undefined;
  let next: Timer | undefined;
  let stopped = false;

  const expireAt = (atMs: number): void => {
    over?.cancel();
    over = clock.after(atMs - clock.monotonicMs(), () => fate.settle({ kind: 'lost' }));
  };
  const renewAfter = (delayMs: number): void => {
    if (!stopped) next = clock.after(delayMs, () => void renew());
  };
  const renew = async (): Promise<void> => {
    const sentAtMs = clock.monotonicMs();
    const result = await client.lease();
    if (stopped) return;
    if (result.kind === 'ok') {
      expireAt(sentAtMs + result.value.leaseTtlMs);
      if (result.value.stop !== undefined) fate.settle({ kind: 'stopped', stop: result.value.stop });
      renewAfter(run.renewEveryMs);
    } else if (result.kind !== 'refused' || !fate.hearRefusal(result)) {
      renewAfter(Math.min(run.renewEveryMs, RUNNER.renewRetryMs));
    }
  };

  expireAt(clock.monotonicMs() + run.leaseTtlMs);
  renewAfter(run.renewEveryMs);
  return {
    stop: () => {
      stopped = true;
      over?.cancel();
      next?.cancel();
    },
  };
}
