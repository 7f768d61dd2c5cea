/**
 * Owns: a load: so many conversations at once, each asking its next question when its last turn has ended, and what that cost.
 * A conversation is used for a few turns and then followed by a fresh one whose sandbox waits already, so that the length of a path does not
 * depend on how fast or how long a load runs.
 */
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs } from './clock.ts';
import type { Asked } from './people.ts';
import type { CpuTimes, Rig } from './rig.ts';
import type { Counters, ThreadParent } from './rows.ts';

export interface LoadOptions {
  /** Conversations at once. */
  readonly conversations: number;
  readonly turns: number;
  /** After this time no further question is asked, however many turns are left. */
  readonly atMostMs: number;
  readonly modelCalls: number;
  /** Between the end of a turn and the next question, so that the sandbox's pull is parked again. 0: a closed loop. */
  readonly pauseMs: number;
}

/** Moments of one turn, milliseconds on the one clock, in the order in which they should come. */
export interface TurnTimes extends Asked {
  readonly pulledMs: number;
  readonly contextMs: number;
  /** The first model request reached the provider. */
  readonly requestMs: number;
  readonly answeredMs: number;
  readonly partialMs: number;
  /** The runner's end was taken; `endedMs` is when the person heard of it. */
  readonly toldMs: number;
}

export interface LoadResult {
  readonly turns: readonly TurnTimes[];
  readonly turnsPerSecond: number;
  /** Share of the machine's cores that other programs took away, 0 to 1; null where it cannot be seen. */
  readonly foreignShare: number | null;
  /** Per turn: CPU milliseconds of each process, and what PostgreSQL counted. */
  readonly cpuMs: CpuTimes;
  readonly counts: Counters;
}

const TURNS_PER_CONVERSATION = 20;
/** Conversations whose first turn (which starts their sandbox) runs at the same time. */
const WARM_UP_AT_ONCE = 8;
/** PostgreSQL's connections report what they counted with their next statement, but at most once a second. */
const COUNTERS_EVERY_MS = 1_200;
/** Enough reads at once that each connection of the server's pool takes one. */
const READS_AT_ONCE = 40;

export async function runLoad(rig: Rig, parent: ThreadParent, options: LoadOptions): Promise<LoadResult> {
  const { people, rows, runner, provider } = rig.parts;
  await rig.setModelCalls(options.modelCalls);
  const needed = Math.ceil(options.turns / TURNS_PER_CONVERSATION / options.conversations) * options.conversations;
  const ids = await rows.threads(parent, needed);
  await inLanes(ids, WARM_UP_AT_ONCE, (id) => people.ask(id));
  const countersBefore = await settledCounters(rig);
  await Promise.all([runner.ask('collect'), provider.ask('collect')]);
  const cpuBefore = await rig.cpuTimes();
  const startedMs = nowMs();
  const asked: Asked[] = [];
  let left = options.turns;
  const isOver = (): boolean => left <= 0 || nowMs() - startedMs > options.atMostMs;
  const use = async (id: string): Promise<void> => {
    for (let nth = 0; nth < TURNS_PER_CONVERSATION && !isOver(); nth++) {
      left -= 1;
      if (options.pauseMs > 0) await sleep(options.pauseMs);
      asked.push(await people.ask(id));
    }
  };
  await inLanes(ids, options.conversations, use);
  const wallMs = nowMs() - startedMs;
  const cpuAfter = await rig.cpuTimes();
  const countersAfter = await settledCounters(rig);
  const cpuMs = cpuPerTurn(cpuBefore, cpuAfter, asked.length);
  const perTurn = (after: number, before: number): number => (after - before) / asked.length;
  return {
    turns: await joined(rig, asked),
    turnsPerSecond: asked.length / (wallMs / 1_000),
    foreignShare: foreignShare(cpuMs, wallMs / asked.length),
    cpuMs,
    counts: {
      flushes: perTurn(countersAfter.flushes, countersBefore.flushes),
      backgroundFlushes: perTurn(countersAfter.backgroundFlushes, countersBefore.backgroundFlushes),
      transactions: perTurn(countersAfter.transactions, countersBefore.transactions),
    },
  };
}

function cpuPerTurn(before: CpuTimes, after: CpuTimes, turns: number): CpuTimes {
  const perTurn = (name: Exclude<keyof CpuTimes, 'postgres'>): number => (after[name] - before[name]) / turns;
  const postgres = after.postgres === null || before.postgres === null ? null : (after.postgres - before.postgres) / turns;
  return {
    machine: perTurn('machine'),
    server: perTurn('server'),
    postgres,
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

/** Does `work` for every id, `lanes` at once. */
async function inLanes(ids: readonly string[], lanes: number, work: (id: string) => Promise<unknown>): Promise<void> {
  const waiting = [...ids];
  const lane = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) await work(id);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function settledCounters({ parts: { people, rows } }: Rig): Promise<Counters> {
  await sleep(COUNTERS_EVERY_MS);
  await people.look(READS_AT_ONCE);
  return rows.counters();
}

/** What people, runner and provider each saw of a turn, as one. */
async function joined({ parts: { runner, provider } }: Rig, asked: readonly Asked[]): Promise<TurnTimes[]> {
  const runs = new Map((await runner.ask('collect')).map((times) => [times.question, times]));
  // Later calls of the same turn come later in the list, so the first one stays.
  const arrivals = new Map([...(await provider.ask('collect'))].reverse());
  return asked.flatMap((one) => {
    const run = runs.get(one.question);
    const requestMs = arrivals.get(one.question);
    if (run === undefined || requestMs === undefined) return [];
    const { pulledMs, contextMs, answeredMs, partialMs, endedMs: toldMs } = run;
    return [{ ...one, pulledMs, contextMs, requestMs, answeredMs, partialMs, toldMs }];
  });
}
