/**
 * Owns: why a turn waits and by which rule it is stuck, as pure functions of its facts (db/ops/turn-facts.ts). A stuck turn is one that a
 * working installation would not have: each rule names what is wrong, and its bound is longer than what puts it right by itself.
 */
import type { TurnFacts } from '../../db/ops/turn-facts.ts';
import { LIMITS } from '../contract/limits.ts';
import type { OperatorTurn, StuckRule, WaitReason } from '../contract/operators.ts';

/** From then on what is normal for a moment is a fault, milliseconds. */
export const STUCK_AFTER_MS = {
  /** A slot should come free: a deadline is minutes, but one of several slots frees sooner. */
  noSlot: 60_000,
  /** A sandbox starts in about a second. */
  noSandbox: 30_000,
  /** Nothing is missing: a claim takes milliseconds, a sweep a second. */
  unclaimed: 15_000,
  /** The reaper sweeps each second. */
  lease: 10_000,
  /** A dead server's attempts are taken back by the next sweep. */
  host: 10_000,
  /** Beyond the grace of a stop. */
  stopping: LIMITS.stopGraceMs + 10_000,
  /** Its calls are closed as unknown each 5 s. */
  deadCall: 30_000,
} as const;

/** Starts of a sandbox that may fail before it is more than bad luck. */
const FAILED_STARTS = 2;

export function phaseOf({ status, run_state }: Pick<TurnFacts, 'status' | 'run_state'>): OperatorTurn['phase'] {
  if (status === 'QUEUED') return 'queued';
  if (status === 'RUNNING') return 'running';
  return run_state === 'LEASED' ? 'stopping' : 'ended';
}

/** null: it does not wait. The first reason that holds: those after it do not matter before it is gone. */
export function whyWaiting(facts: TurnFacts): WaitReason | null {
  if (facts.status !== 'QUEUED') return null;
  if (facts.behind !== null) return 'behind';
  if (facts.paused) return 'paused';
  if (facts.has_sandbox) return facts.free_slots > 0 ? 'starting' : 'no-slot';
  if (facts.servers === 0) return 'no-server';
  if (facts.failed_starts > 0) return 'sandbox-cannot-start';
  return facts.free_slots > 0 ? 'no-sandbox' : 'no-slot';
}

/** What is so, and what an operator does about it. */
export const STUCK_TEXTS: Readonly<Record<StuckRule, string>> = {
  QUEUED_NO_SERVER: 'No server that starts sandboxes is there. Start one, or look why they ended.',
  QUEUED_NO_SLOT_LONG: 'Every slot is taken for long. Stop what hangs, or raise HEPH_AGENT_CAPACITY_TURNS on every server.',
  QUEUED_SANDBOX_FAILING: 'Its sandbox cannot be started. The log says "sandbox could not start"; heph doctor checks the machine.',
  QUEUED_NO_SANDBOX_LONG: 'A slot is free and no server starts a sandbox. Look at the sandboxes of each server: they may all be in use.',
  QUEUED_UNCLAIMED_LONG:
    'A slot is free, its sandbox is there, and nobody claims it. Look at the actors; then requeue or drain that server.',
  RUNNING_LEASE_EXPIRED: 'Its lease ran out and no reaper takes it back. Look at the reaper on each server; requeue takes it back now.',
  RUNNING_HOST_DEAD: 'Its server is dead and no reaper takes it back. Look at the reaper on each server; requeue takes it back now.',
  STOPPING_LONG: 'It was stopped and its slot is still held. Look at the reaper on each server.',
  CALLS_OPEN_OF_DEAD_HOST: 'Model calls of a dead server are still open, so their cost is in no sum. A running server closes them.',
};

/** Every rule that fires, in the order of STUCK_TEXTS. */
export function stuckRules(facts: TurnFacts): readonly StuckRule[] {
  const why = whyWaiting(facts);
  const waitedFor = (afterMs: number) => facts.age_ms >= afterMs;
  const held = facts.run_state === 'LEASED';
  const overFor = (ms: number | null, afterMs: number) => ms !== null && ms >= afterMs;
  const fires: Readonly<Record<StuckRule, boolean>> = {
    QUEUED_NO_SERVER: why === 'no-server' && waitedFor(STUCK_AFTER_MS.unclaimed),
    QUEUED_NO_SLOT_LONG: why === 'no-slot' && waitedFor(STUCK_AFTER_MS.noSlot),
    QUEUED_SANDBOX_FAILING: why === 'sandbox-cannot-start' && facts.failed_starts >= FAILED_STARTS,
    QUEUED_NO_SANDBOX_LONG: why === 'no-sandbox' && waitedFor(STUCK_AFTER_MS.noSandbox),
    QUEUED_UNCLAIMED_LONG: why === 'starting' && waitedFor(STUCK_AFTER_MS.unclaimed),
    RUNNING_LEASE_EXPIRED: held && facts.status === 'RUNNING' && facts.lease_ms !== null && -facts.lease_ms >= STUCK_AFTER_MS.lease,
    RUNNING_HOST_DEAD: held && facts.status === 'RUNNING' && overFor(facts.host_ended_ms, STUCK_AFTER_MS.host),
    STOPPING_LONG: overFor(facts.stopping_ms, STUCK_AFTER_MS.stopping),
    CALLS_OPEN_OF_DEAD_HOST: overFor(facts.dead_call_ms, STUCK_AFTER_MS.deadCall),
  };
  return (Object.keys(fires) as StuckRule[]).filter((rule) => fires[rule]);
}

/** The turn as the operator wire has it. */
export function toOperatorTurn(facts: TurnFacts): OperatorTurn {
  const why = whyWaiting(facts);
  const held = facts.run_state === 'LEASED';
  return {
    ...{ id: facts.id, conversationId: facts.conversation_id, workspace: facts.workspace, surface: facts.surface, status: facts.status },
    ...{ phase: phaseOf(facts), attempt: facts.attempt, epoch: facts.epoch },
    ...{ createdAt: facts.created_at, startedAt: facts.started_at, endedAt: facts.ended_at, ageMs: facts.age_ms },
    waiting: why === null ? null : { why, behind: facts.behind },
    leaseMs: held ? facts.lease_ms : null,
    deadlineMs: held ? facts.deadline_ms : null,
    host:
      facts.host_id === null || facts.host_name === null
        ? null
        : { id: facts.host_id, name: facts.host_name, alive: facts.host_ended_ms === null },
    error: facts.error_code,
    stuck: stuckRules(facts).map((rule) => ({ rule, text: STUCK_TEXTS[rule] })),
  };
}
