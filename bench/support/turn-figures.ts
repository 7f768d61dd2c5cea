/**
 * Owns: what is read out of the measurements of the scenario `turns`, and the targets that stand beside it.
 */
import { type Figure, median, percentile } from './figures.ts';
import type { LoadResult, TurnTimes } from './load.ts';

/** Commits that a turn must wait for, and one more for each model call. */
const FLUSHES = 2;
/** Counters of PostgreSQL take in a checkpoint or a sweep now and then. */
const FLUSHES_SLACK = 0.1;
const TARGETS = { serverCpuMs: 4, activationMs: 3, actorKb: 3, rssMb: 200, requestMs: 8, requestUnits: 2 } as const;

function atMost(limit: number, text = `<= ${limit}`): { target: { atMost: number; text: string } } {
  return { target: { atMost: limit, text } };
}

export function latencyFigures(paced: LoadResult, pacedTwo: LoadResult, unitMs: number): Figure[] {
  const request = paced.turns.map((turn) => turn.requestMs - turn.askedMs);
  const whole = paced.turns.map((turn) => turn.endedMs - turn.askedMs);
  const { requestUnits, requestMs } = TARGETS;
  const limit = requestUnits * unitMs + requestMs;
  return [
    { name: 'submit -> model request, p50', value: median(request), unit: 'ms', ...atMost(limit, `<= ${requestUnits}u + ${requestMs} ms`) },
    { name: 'submit -> model request, p99', value: percentile(request, 0.99), unit: 'ms' },
    { name: 'submit -> the person hears the end, p50', value: median(whole), unit: 'ms' },
    { name: 'submit -> the person hears the end, p99', value: percentile(whole, 0.99), unit: 'ms' },
    flushFigure('WAL flushes per turn, 1 model call', paced, 1),
    flushFigure('WAL flushes per turn, 2 model calls', pacedTwo, 2),
    { name: 'background WAL flushes per turn', value: paced.counts.backgroundFlushes, unit: '' },
    { name: 'statements per turn, 1 model call', value: paced.counts.transactions, unit: '' },
    { name: 'statements per turn, 2 model calls', value: pacedTwo.counts.transactions, unit: '' },
    ...cpuFigures(paced),
  ];
}

function flushFigure(name: string, { counts }: LoadResult, modelCalls: number): Figure {
  const wanted = FLUSHES + modelCalls;
  return { name, value: counts.flushes, unit: '', ...atMost(wanted + FLUSHES_SLACK, `<= ${wanted}`) };
}

/** Each step from the end of the one before it. */
export function stepFigures({ turns }: LoadResult): Figure[] {
  const step = (name: string, from: keyof TurnTimes, to: keyof TurnTimes): Figure => {
    return { name, value: median(turns.map((turn) => Number(turn[to]) - Number(turn[from]))), unit: 'ms' };
  };
  return [
    step('question sent -> the parked pull has the run', 'askedMs', 'pulledMs'),
    step('question sent -> 202 (beside the others)', 'askedMs', 'acceptedMs'),
    step('run -> context read', 'pulledMs', 'contextMs'),
    step('context -> model request at the provider', 'contextMs', 'requestMs'),
    step('model request -> answer at the runner', 'requestMs', 'answeredMs'),
    step('partial answer', 'answeredMs', 'partialMs'),
    step('end of the turn', 'partialMs', 'toldMs'),
    step('end -> the person hears it', 'toldMs', 'endedMs'),
  ];
}

export function loadFigures(result: LoadResult): Figure[] {
  const { turns, turnsPerSecond, counts } = result;
  const request = turns.map((turn) => turn.requestMs - turn.askedMs);
  return [
    { name: 'turns per second', value: turnsPerSecond, unit: '/s' },
    { name: 'submit -> model request, p50', value: median(request), unit: 'ms' },
    { name: 'submit -> model request, p99', value: percentile(request, 0.99), unit: 'ms' },
    { name: 'WAL flushes per turn', value: counts.flushes, unit: '' },
    { name: 'statements per turn', value: counts.transactions, unit: '' },
    ...cpuFigures(result),
  ];
}

function cpuFigures({ cpuMs: { server, postgres, runner, provider, people }, foreignShare }: LoadResult): Figure[] {
  const limit = TARGETS.serverCpuMs;
  return [
    { name: 'CPU per turn: server', value: server, unit: 'ms', ...atMost(limit, `<= ${limit} ms`) },
    ...(postgres === null ? [] : [{ name: 'CPU per turn: PostgreSQL', value: postgres, unit: 'ms' } as const]),
    { name: 'CPU per turn: stub runner, provider and people', value: runner + provider + people, unit: 'ms' },
    ...(foreignShare === null ? [] : [{ name: 'cores that other programs took', value: foreignShare * 100, unit: '%' } as const]),
  ];
}

export function activationFigures(short: readonly number[], long: readonly number[]): Figure[] {
  const limit = atMost(TARGETS.activationMs, `<= ${TARGETS.activationMs} ms`);
  return [
    { name: 'activation, 10 entries, p50', value: median(short), unit: 'ms', ...limit },
    { name: 'activation, 10,000 entries, p50', value: median(long), unit: 'ms', ...limit },
    { name: 'activation, 10 entries, p99', value: percentile(short, 0.99), unit: 'ms' },
    { name: 'activation, 10,000 entries, p99', value: percentile(long, 0.99), unit: 'ms' },
  ];
}

export function memoryFigures(memory: { readonly idleRssMb: number; readonly loadedRssMb: number; readonly actorBytes: number }): Figure[] {
  const { rssMb, actorKb } = TARGETS;
  return [
    { name: 'server, ready, no runners: RSS', value: memory.idleRssMb, unit: 'MB', ...atMost(rssMb, `<= ${rssMb} MB`) },
    { name: 'server, after the loads: RSS', value: memory.loadedRssMb, unit: 'MB', ...atMost(rssMb, `<= ${rssMb} MB`) },
    { name: 'one idle conversation actor', value: memory.actorBytes / 1024, unit: 'KB', ...atMost(actorKb, `<= ${actorKb} KB`) },
  ];
}
