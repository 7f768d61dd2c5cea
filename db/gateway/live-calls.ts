/**
 * Owns: which calls in flight have lost their attempt. A read: it closes streams early; the fence of the next write is the guarantee.
 * rule: R5  rule: R8
 */
import { z } from 'zod';
import type { CallId, RunId, SandboxId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export interface CallInFlight {
  readonly callId: CallId;
  readonly runId: RunId;
  readonly epoch: number;
  readonly sandboxId: SandboxId;
}

/** Why a call's attempt may call no more. */
export type Sealed = { readonly kind: 'lost' } | { readonly kind: 'stopped'; readonly stop: 'developer' | 'deadline' };

const sealedRow = z.object({ call_id: z.string(), verdict: z.enum(['lost', 'developer', 'deadline']) });

/** Of `calls` (the caller bounds their number), those whose attempt was stopped, passed its deadline or lost its run. */
export async function findSealedCalls(db: Executor, calls: readonly CallInFlight[]): Promise<ReadonlyMap<CallId, Sealed>> {
  const callIds = sql.array(
    calls.map((call) => call.callId),
    'uuid',
  );
  const runIds = sql.array(
    calls.map((call) => call.runId),
    'uuid',
  );
  const epochs = sql.array(
    calls.map((call) => call.epoch),
    'int4',
  );
  const sandboxIds = sql.array(
    calls.map((call) => call.sandboxId),
    'uuid',
  );
  const rows = await db.any(sql.prepared('gateway_sealed_calls', sealedRow)`
    select c.call_id, case
      when t.status = 'STOPPED' then 'developer'
      when t.status = 'RUNNING' then 'deadline'
      else 'lost' end as verdict
    from unnest(${callIds}, ${runIds}, ${epochs}, ${sandboxIds}) as c(call_id, run_id, epoch, sandbox_id)
    left join agent_run r on r.id = c.run_id and r.epoch = c.epoch and r.sandbox_id = c.sandbox_id and r.state = 'LEASED'
    left join mentor_turn t on t.id = r.turn_id
    where t.status is distinct from 'RUNNING' or r.deadline_at <= (select clock_timestamp())`);
  return new Map(rows.map((row) => [row.call_id as CallId, toSealed(row.verdict)]));
}

function toSealed(verdict: 'lost' | 'developer' | 'deadline'): Sealed {
  return verdict === 'lost' ? { kind: 'lost' } : { kind: 'stopped', stop: verdict };
}
