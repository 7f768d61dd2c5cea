/**
 * Owns: the check of an attempt's call, and renewals. rule: R5 (run, epoch and sandbox name the attempt)  rule: R8 (database clock)
 * Leased is a state: an expired lease that nobody took back still passes. A sandbox that has ended passes nothing.
 */
import { z } from 'zod';
import type { StopReason } from '../../src/contract/common.ts';
import type { RunId, SandboxId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export interface AttemptKey {
  readonly runId: RunId;
  readonly epoch: number;
  readonly sandboxId: SandboxId;
}

/** Remaining durations, milliseconds, never below 0. */
export interface ClaimTimes {
  readonly leaseTtlMs: number;
  readonly deadlineMs: number;
}

/** An attempt that has its run. `stop` is set after a stop or the deadline. */
export type LiveAttempt = ClaimTimes & { readonly stop: StopReason | null };

/** `null`: the attempt has lost its run. */
export type AttemptState = LiveAttempt | null;

/** A renewed attempt with its whole name: a batch may hold two attempts of one run, and only one of them has it. */
export type RenewedAttempt = LiveAttempt & Omit<AttemptKey, 'runId'>;

/** Of `r`, a run. */
export const sandboxLives = sql.fragment`exists (select from sandbox b where b.id = r.sandbox_id and b.state <> 'ENDED')`;

const stateRow = z.object({ lease_ms: z.number(), deadline_ms: z.number(), status: z.string().nullable() });

function toState(row: z.infer<typeof stateRow>): LiveAttempt {
  const stop = row.status === 'STOPPED' ? 'developer' : row.deadline_ms <= 0 ? 'deadline' : null;
  return { leaseTtlMs: Math.max(0, row.lease_ms), deadlineMs: Math.max(0, row.deadline_ms), stop };
}

/** What the attempt may still do. A read: writes check again in their own statement. */
export async function checkAttempt(db: Executor, key: AttemptKey): Promise<AttemptState> {
  const row = await db.maybeOne(sql.prepared('ledger_check_attempt', stateRow)`
    select (extract(epoch from r.lease_until - clock_timestamp()) * 1000)::int as lease_ms,
      (extract(epoch from r.deadline_at - clock_timestamp()) * 1000)::int as deadline_ms, t.status
    from agent_run r left join mentor_turn t on t.id = r.turn_id
    where r.id = ${key.runId} and r.epoch = ${key.epoch} and r.sandbox_id = ${key.sandboxId} and r.state = 'LEASED'
      and ${sandboxLives}`);
  return row && toState(row);
}

/**
 * The same, and notes that the attempt has called: from now on the claim is not given out again. The note may be lost in a crash of the
 * database (no flush is worth it): then the same sandbox could be given the same claim again, which the epoch still fences.
 */
export async function noteCall(db: Executor, key: AttemptKey): Promise<AttemptState> {
  const row = await db.maybeOne(sql.prepared('ledger_note_call', stateRow)`
    with quick as materialized (select set_config('synchronous_commit', 'off', true)),
    run as (
      update agent_run r set called_at = coalesce(r.called_at, clock_timestamp()) from quick
      where r.id = ${key.runId} and r.epoch = ${key.epoch} and r.sandbox_id = ${key.sandboxId} and r.state = 'LEASED'
        and ${sandboxLives}
      returning r.lease_until, r.deadline_at, r.turn_id
    )
    select (extract(epoch from run.lease_until - clock_timestamp()) * 1000)::int as lease_ms,
      (extract(epoch from run.deadline_at - clock_timestamp()) * 1000)::int as deadline_ms, t.status
    from run left join mentor_turn t on t.id = run.turn_id`);
  return row && toState(row);
}

const renewedRow = stateRow.extend({ id: z.string(), epoch: z.number(), sandbox_id: z.string() });

/**
 * Renews a batch of leases in one statement: rows in order of id, locked ones skipped (whoever holds one is ending it or taking it back).
 * No lease goes past the claim's bound. Returns the renewed attempts by run id; compare epoch and sandbox with the key.
 */
export async function renewLeases(
  db: Executor,
  keys: readonly AttemptKey[],
  leaseTtlMs: number,
): Promise<ReadonlyMap<RunId, RenewedAttempt>> {
  const [runs, epochs, sandboxes] = [keys.map((k) => k.runId), keys.map((k) => k.epoch), keys.map((k) => k.sandboxId)];
  const rows = await db.any(sql.prepared('ledger_renew', renewedRow)`
    with wanted as materialized (
      select * from unnest(${sql.array(runs, 'uuid')}, ${sql.array(epochs, 'int4')}, ${sql.array(sandboxes, 'uuid')})
        as w(id, epoch, sandbox_id)
    ), locked as materialized (
      select r.id from agent_run r join wanted w on w.id = r.id and w.epoch = r.epoch and w.sandbox_id = r.sandbox_id
      where r.state = 'LEASED' and r.bound_at > (select clock_timestamp())
      order by r.id for update of r skip locked
    ), renewed as (
      update agent_run r set lease_until = least(clock_timestamp() + ${leaseTtlMs}::int * interval '1 ms', r.bound_at),
        called_at = coalesce(r.called_at, clock_timestamp())
      from locked l where r.id = l.id
      returning r.id, r.epoch, r.sandbox_id, r.lease_until, r.deadline_at, r.turn_id
    )
    select n.id, n.epoch, n.sandbox_id, (extract(epoch from n.lease_until - clock_timestamp()) * 1000)::int as lease_ms,
      (extract(epoch from n.deadline_at - clock_timestamp()) * 1000)::int as deadline_ms, t.status
    from renewed n left join mentor_turn t on t.id = n.turn_id`);
  return new Map(rows.map((row) => [row.id as RunId, { ...toState(row), epoch: row.epoch, sandboxId: row.sandbox_id as SandboxId }]));
}
