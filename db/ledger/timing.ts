/**
 * Owns: how long a turn and its attempt took, as the statements that end one tell it: for metrics and traces, never judged by. rule: R8 (the
 * database clock measures, so servers need not agree about the time)
 * Such a statement has a CTE `turn` with the turn's columns after the write. An attempt counts from its first call, which follows its claim at once.
 */
import { z } from 'zod';
import type { Surface } from '../../src/contract/common.ts';
import { sql } from '../pool.ts';

/** Milliseconds. */
export interface TurnTiming {
  readonly surface: Surface;
  /** From the question to the first claim; null: it was never claimed. */
  readonly queueWaitMs: number | null;
  /** From the question to the end of the turn; of a turn that goes on, to now. */
  readonly durationMs: number;
  /** From the question to now: the loop of a stopped turn ends after its turn has ended. */
  readonly ageMs: number;
  /** From the first call of the attempt to now; null: it made none, or there was no attempt. */
  readonly attemptMs: number | null;
}

export const timingRow = z.object({
  surface: z.enum(['app', 'slack']),
  queue_wait_ms: z.number().nullable(),
  duration_ms: z.number(),
  age_ms: z.number(),
  attempt_ms: z.number().nullable(),
});

export function toTiming(row: z.infer<typeof timingRow>): TurnTiming {
  const { surface, queue_wait_ms: queueWaitMs, duration_ms: durationMs, age_ms: ageMs, attempt_ms: attemptMs } = row;
  return { surface, queueWaitMs, durationMs, ageMs, attemptMs };
}

/** The columns of `timingRow` but the attempt's, from `turn`. */
export const TURN_TIMES = sql.fragment`turn.surface,
      (extract(epoch from turn.started_at - turn.created_at) * 1000)::float8 as queue_wait_ms,
      (extract(epoch from coalesce(turn.ended_at, clock_timestamp()) - turn.created_at) * 1000)::float8 as duration_ms,
      (extract(epoch from clock_timestamp() - turn.created_at) * 1000)::float8 as age_ms`;

/** The attempt's, of an attempt that first called at `claim.called_at`. */
export const ATTEMPT_TIME = sql.fragment`(extract(epoch from clock_timestamp() - claim.called_at) * 1000)::float8 as attempt_ms`;
