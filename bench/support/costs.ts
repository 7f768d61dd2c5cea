/**
 * Owns: what a load cost, as differences between two readings: CPU time of each process, and what PostgreSQL counted.
 */
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Counters } from '../../db/bench/rows.ts';
import { nowMs } from './clock.ts';
import type { CpuTimes, Rig } from './rig.ts';

/** Per turn. */
export interface Costs {
  readonly cpuMs: CpuTimes;
  readonly counts: Counters;
  /** Share of the machine's cores that other programs took away, 0 to 1; null where it cannot be seen. */
  readonly foreignShare: number | null;
}

export interface Reading {
  readonly atMs: number;
  readonly cpu: CpuTimes;
}

/** PostgreSQL's connections report what they counted with their next statement, but at most once a second. */
const COUNTERS_EVERY_MS = 1_100;
/** Enough reads at once that each connection of the server's pool takes one, in one round or the next. */
const READS_AT_ONCE = 40;
const ROUNDS_MAX = 5;

export async function readCpu(rig: Rig): Promise<Reading> {
  const cpu = await rig.cpuTimes();
  return { atMs: nowMs(), cpu };
}

/** The counters with everything in them that has happened so far. */
export async function settledCounters({ parts: { people, rows } }: Rig): Promise<Counters> {
  await sleep(COUNTERS_EVERY_MS);
  let counters = await rows.counters();
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    await people.look(READS_AT_ONCE);
    const { flushes } = counters;
    counters = await rows.counters();
    if (round > 1 && counters.flushes === flushes) break;
  }
  return counters;
}

export interface Span<T> {
  readonly before: T;
  readonly after: T;
}

export function costsOf(turns: number, reading: Span<Reading>, counters: Span<Counters>): Costs {
  const cpuMs = cpuPerTurn(turns, reading.before.cpu, reading.after.cpu);
  const wallMsPerTurn = (reading.after.atMs - reading.before.atMs) / turns;
  const count = (name: keyof Counters): number => (counters.after[name] - counters.before[name]) / turns;
  return {
    cpuMs,
    counts: { flushes: count('flushes'), backgroundFlushes: count('backgroundFlushes'), transactions: count('transactions') },
    foreignShare: foreignShare(cpuMs, wallMsPerTurn),
  };
}

function cpuPerTurn(turns: number, before: CpuTimes, after: CpuTimes): CpuTimes {
  const perTurn = (name: Exclude<keyof CpuTimes, 'postgres'>): number => (after[name] - before[name]) / turns;
  return {
    machine: perTurn('machine'),
    server: perTurn('server'),
    postgres: after.postgres === null || before.postgres === null ? null : (after.postgres - before.postgres) / turns,
    runner: perTurn('runner'),
    provider: perTurn('provider'),
    people: perTurn('people'),
  };
}

function foreignShare({ machine, server, postgres, runner, provider, people }: CpuTimes, wallMsPerTurn: number): number | null {
  if (postgres === null) return null;
  const foreignMs = machine - server - postgres - runner - provider - people;
  return Math.max(0, foreignMs) / (wallMsPerTurn * availableParallelism());
}
