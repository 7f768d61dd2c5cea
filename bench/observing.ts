/**
 * Owns: the scenario `observing`: what metrics cost. Blocks of turns on one warm server, in pairs: one with metrics, scraped once a second, one
 * without, the order changing from pair to pair, so that what else happens on the machine hits both alike.
 */
import { availableParallelism } from 'node:os';
import { type Figure, median, type Report, type ScenarioOptions } from './support/figures.ts';
import { conversationsFor, type LoadOptions, type LoadResult, Loads } from './support/load.ts';
import { Rig } from './support/rig.ts';

interface Size {
  readonly pairs: number;
  readonly block: LoadOptions;
  readonly warmUp: LoadOptions;
  readonly unitInserts: number;
}

const loop = (turns: number): LoadOptions => ({ conversations: 8, turns, modelCalls: 1, pauseMs: 0 });
const FULL: Size = { pairs: 8, block: loop(240), warmUp: loop(480), unitInserts: 600 };
const QUICK: Size = { pairs: 3, block: loop(160), warmUp: loop(320), unitInserts: 300 };

const LOAD_MS = 15_000;
const SCRAPE_EVERY_MS = 1_000;
/** Turns per second that observing may take, percent. */
const COST_MAX = 3;

interface Pair {
  readonly on: LoadResult;
  readonly off: LoadResult;
}

export async function observing({ quick, profileDir, say }: ScenarioOptions): Promise<Report> {
  const size = quick ? QUICK : FULL;
  say('starting PostgreSQL, server, stub runner and stub provider');
  const rig = await Rig.start({ profileDir });
  try {
    return await Promise.race([measure(rig, size, say), rig.failed]);
  } finally {
    await rig.stop();
  }
}

async function measure(rig: Rig, size: Size, say: ScenarioOptions['say']): Promise<Report> {
  const { rows } = rig.parts;
  const unit = await rows.unitInserts(size.unitInserts);
  const conversations = conversationsFor(size.warmUp) + 2 * size.pairs * conversationsFor(size.block);
  say(`a first turn in each of ${conversations} conversations`);
  const loads = await Loads.prepare(rig, conversations, LOAD_MS);
  await loads.run(size.warmUp);
  const pairs: Pair[] = [];
  for (let nth = 0; nth < size.pairs; nth++) {
    const first = await block(rig, loads, { ...size, on: nth % 2 === 0 });
    const second = await block(rig, loads, { ...size, on: nth % 2 === 1 });
    const pair = nth % 2 === 0 ? { on: first, off: second } : { on: second, off: first };
    say(`pair ${nth + 1}: ${pair.on.turnsPerSecond.toFixed(1)} turns/s with metrics, ${pair.off.turnsPerSecond.toFixed(1)} without`);
    pairs.push(pair);
  }
  return {
    unitMs: median(unit),
    groups: [{ title: `${size.pairs} pairs of ${size.block.turns} turns, 8 conversations at once`, figures: figuresOf(pairs) }],
    notes: [
      'Costs are medians over the pairs; beside them the middle half of the pairs. A spread that is wider than the cost says that the cost is not seen.',
      'With metrics the server is scraped once a second, which is fifteen times as often as Prometheus does.',
    ],
    environment: { postgres: await rows.serverVersion(), cores: availableParallelism() },
  };
}

async function block(rig: Rig, loads: Loads, { block: options, on }: Size & { readonly on: boolean }): Promise<LoadResult> {
  const { server } = rig.parts;
  await server.ask('observe', on);
  const scrape = async (): Promise<void> => {
    await (await fetch(`http://127.0.0.1:${server.greeting.ops}/metrics`)).text();
  };
  const timer = on ? setInterval(() => void scrape().catch(() => undefined), SCRAPE_EVERY_MS) : undefined;
  try {
    return await loads.run(options);
  } finally {
    clearInterval(timer);
  }
}

function figuresOf(pairs: readonly Pair[]): Figure[] {
  const lost = pairs.map(({ on, off }) => (1 - on.turnsPerSecond / off.turnsPerSecond) * 100);
  const cpu = pairs.map(({ on, off }) => (on.cpuMs.server / off.cpuMs.server - 1) * 100);
  const foreign = pairs
    .flatMap(({ on, off }) => [on, off])
    .flatMap(({ foreignShare }) => (foreignShare === null ? [] : [foreignShare * 100]));
  const limit = { target: { atMost: COST_MAX, text: `<= ${COST_MAX} %` } };
  return [
    { name: 'turns per second with metrics, p50', value: median(pairs.map(({ on }) => on.turnsPerSecond)), unit: '/s' },
    { name: 'turns per second without, p50', value: median(pairs.map(({ off }) => off.turnsPerSecond)), unit: '/s' },
    { name: 'turns per second that metrics cost, p50', value: median(lost), unit: '%', ...limit },
    ...spread('turns per second that metrics cost', lost),
    { name: 'CPU of the server that metrics cost, p50', value: median(cpu), unit: '%' },
    ...spread('CPU of the server that metrics cost', cpu),
    ...(foreign.length === 0 ? [] : [{ name: 'cores that other programs took, p50', value: median(foreign), unit: '%' } as const]),
  ];
}

const QUARTER = 0.25;

function spread(name: string, values: readonly number[]): Figure[] {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  return [
    { name: `${name}, a quarter of the pairs below`, value: at(QUARTER), unit: '%' },
    { name: `${name}, a quarter of the pairs above`, value: at(1 - QUARTER), unit: '%' },
  ];
}
