/**
 * Owns: the life of an assigned runner: it pulls the runs of its one conversation, one at a time, until it is asked to stop or its
 * credential is refused. A server that does not answer is waited for, for ever.
 * Does not own: what a run does (turn.ts) and the process around it (driver.ts).
 */
import type { AgentRun, RunnerAssignment } from '../src/contract/agent.ts';
import { LIMITS } from '../src/contract/limits.ts';
import { type Clock, pause } from '../src/kernel/clock.ts';
import { RUNNER } from './config.ts';
import { Fate } from './fate.ts';
import { GatewayClient } from './gateway-client.ts';
import type { Protocol } from './protocol.ts';
import { openTransport } from './transport.ts';
import { runTurn, type TurnOptions } from './turn.ts';

export interface ServeOptions {
  readonly protocol: Protocol;
  readonly clock: Clock;
  readonly setprivPath: string | null;
  /** Aborts when the process is asked to stop gracefully. */
  readonly drain: AbortSignal;
}

/** Serves one conversation. Returns the exit code of the process. */
export async function serve(assignment: RunnerAssignment, options: ServeOptions): Promise<number> {
  const { protocol, clock, drain } = options;
  const transport = openTransport(assignment.gateway);
  const gateway = new GatewayClient({ transport, credential: assignment.credential, clock });
  const turn = { ...options, gateway, transport, workDir: assignment.workDir, bash: assignment.bash };
  protocol.report({ type: 'idle' });
  for (let failures = 0; !drain.aborted; ) {
    const startedMs = clock.monotonicMs();
    const pulled = await gateway.next(LIMITS.pullWaitMaxMs, drain);
    if (pulled.kind === 'refused' && pulled.status === 401) return 0;
    if (pulled.kind === 'ok' && pulled.value !== null) {
      failures = 0;
      if ((await serveRun(pulled.value, turn)) === 'spent') return 1;
    } else if (pulled.kind !== 'ok' || clock.monotonicMs() - startedMs < RUNNER.pullQuickMs) {
      await pause(clock, backoffMs(failures++), drain);
    } else {
      failures = 0;
    }
  }
  return 0;
}

async function serveRun(run: AgentRun, options: TurnOptions): Promise<'usable' | 'spent'> {
  const { protocol } = options;
  protocol.report({ type: 'busy', runId: run.id, epoch: run.epoch });
  if (run.kind !== 'TURN') {
    protocol.log('error', 'run_kind_unknown', { runId: run.id });
    await options.gateway.forRun(run, new Fate().lost).end({ outcome: 'COMPLETED' });
    protocol.report({ type: 'idle' });
    return 'usable';
  }
  const outcome = await runTurn(run, options);
  protocol.report({ type: 'idle' });
  return outcome;
}

/** Doubles with each failure up to the limit; jitter keeps the runners of one server from coming back together. */
function backoffMs(failures: number): number {
  const full = Math.min(RUNNER.pullBackoffMaxMs, RUNNER.pullBackoffMinMs * 2 ** Math.min(failures, 16));
  return full * (0.5 + Math.random() / 2);
}
