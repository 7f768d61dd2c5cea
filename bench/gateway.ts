/**
 * Owns: the scenario `gateway`: what the way through the gateway costs, against a direct connection and against a plain pipe in a process of
 * its own: the first byte, CPU time for each streamed megabyte, and memory under 200 streams at once.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { BenchRows } from '../db/bench/rows.ts';
import type { PipeCommands } from './pipe-child.ts';
import type { ServerCommands, ServerPorts } from './server-child.ts';
import type { StreamProviderCommands, StreamShape } from './stream-provider-child.ts';
import { Child } from './support/child.ts';
import { type Figure, type FigureGroup, median, percentile, type Report, type ScenarioOptions } from './support/figures.ts';
import { type AttemptHeaders, HeldTurns } from './support/held-turns.ts';
import type { Usage } from './support/parent.ts';
import { startPostgres } from './support/postgres.ts';
import { StreamCalls, type Way } from './support/stream-calls.ts';

const STREAMS = 200;
/** The gateway lets a run have four calls open at once, and a turn make forty. */
const CALLS_AT_ONCE_PER_TURN = 4;
const CALLS_PER_TURN = 40;
const MB = 1024 * 1024;

interface Size {
  readonly latencyCalls: number;
  /** Streams of a measurement of CPU time, one after the other in four lanes. */
  readonly bulkStreams: number;
  readonly unitInserts: number;
  /** Writes of each of the 200 streams, 50 ms apart. */
  readonly slowWrites: number;
}
const FULL: Size = { latencyCalls: 400, bulkStreams: 24, unitInserts: 1_000, slowWrites: 200 };
const QUICK: Size = { latencyCalls: 80, bulkStreams: 8, unitInserts: 300, slowWrites: 60 };

const SHORT: StreamShape = { events: 20, eventsPerWrite: 20, everyMs: 0 };
/** Each delta in a write of its own, as a provider sends words. */
const WORDS: StreamShape = { events: 12_000, eventsPerWrite: 1, everyMs: 0 };
/** Deltas that a provider or a network has gathered. */
const BULK: StreamShape = { events: 40_000, eventsPerWrite: 100, everyMs: 0 };

interface Parts {
  readonly rows: BenchRows;
  readonly provider: Child<StreamProviderCommands, { readonly port: number }>;
  readonly pipe: Child<PipeCommands, { readonly port: number }>;
  readonly server: Child<ServerCommands, ServerPorts>;
  readonly calls: StreamCalls;
  readonly attempts: AttemptHeaders[];
}

type Stop = () => unknown;

export async function gateway({ quick, profileDir, say }: ScenarioOptions): Promise<Report> {
  const size = quick ? QUICK : FULL;
  const stops: Stop[] = [];
  try {
    say('starting PostgreSQL, server, pipe and provider; claiming turns');
    const parts = await start(stops, { size, profileDir });
    return await measure(parts, size, say);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

/** Enough turns for all calls: a turn makes at most 40. */
function turnsFor(size: Size): number {
  const calls = 2 * size.latencyCalls + 2 * size.bulkStreams + STREAMS;
  return Math.max(Math.ceil(STREAMS / CALLS_AT_ONCE_PER_TURN), Math.ceil(calls / CALLS_PER_TURN)) + 10;
}

async function start(stops: Stop[], { size, profileDir }: { size: Size; profileDir: string | null }): Promise<Parts> {
  const scratchDir = mkdtempSync(path.join(tmpdir(), 'heph-bench-'));
  stops.push(() => rmSync(scratchDir, { recursive: true, force: true }));
  const postgres = await startPostgres();
  stops.push(() => postgres.stop());
  const rows = await BenchRows.open(postgres.url);
  stops.push(() => rows.close());
  const provider = await Child.start<StreamProviderCommands, { port: number }>({ name: 'stream-provider-child', logDir: scratchDir });
  stops.push(() => provider.end());
  const pipe = await Child.start<PipeCommands, { port: number }>({ name: 'pipe-child', logDir: scratchDir });
  stops.push(() => pipe.end());
  await pipe.ask('set', provider.greeting.port);
  const turns = turnsFor(size);
  const server = await Child.start<ServerCommands, ServerPorts>({
    name: 'server-child',
    logDir: scratchDir,
    execArgv: profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`],
    env: serverEnv({ scratchDir, databaseUrl: postgres.url, providerPort: provider.greeting.port, turns }),
  });
  stops.push(() => server.end());
  const held = new HeldTurns(server, rows);
  stops.push(() => held.close());
  const calls = new StreamCalls();
  stops.push(() => calls.close());
  return { rows, provider, pipe, server, calls, attempts: await held.gather(turns) };
}

/** Everything that is not named here has its default. A held turn renews no lease. */
function serverEnv(at: { scratchDir: string; databaseUrl: string; providerPort: number; turns: number }): Record<string, string> {
  return {
    HEPH_PORT: '0',
    HEPH_AGENT_PORT: '0',
    HEPH_OPS_PORT: '0',
    HEPH_DATABASE_URL: at.databaseUrl,
    HEPH_DATA_DIR: path.join(at.scratchDir, 'server'),
    HEPH_LLM_API: 'openai-completions',
    HEPH_LLM_BASE_URL: `http://127.0.0.1:${at.providerPort}/v1`,
    HEPH_LLM_MODEL: 'bench',
    HEPH_AGENT_CAPACITY_TURNS: String(at.turns),
    HEPH_AGENT_CAPACITY_TURN_LEASE_TTL: '10m',
    HEPH_SANDBOX_MAX: '1000',
    HEPH_SANDBOX_IDLE: '1d',
  };
}

async function measure(parts: Parts, size: Size, say: ScenarioOptions['say']): Promise<Report> {
  const { rows, provider, pipe, server } = parts;
  const ways = {
    direct: { name: 'direct', base: `http://127.0.0.1:${provider.greeting.port}/v1` },
    pipe: { name: 'plain pipe', base: `http://127.0.0.1:${pipe.greeting.port}/v1` },
    gateway: { name: 'gateway', base: `http://127.0.0.1:${server.greeting.agent}/internal/llm/v1` },
  } as const satisfies Record<string, Way>;
  const before = await rows.unitInserts(size.unitInserts / 2);
  say('first byte, one call at a time, the three ways in turn');
  const latency = await firstBytes(parts, Object.values(ways), size.latencyCalls);
  say('CPU time of streams as fast as they are taken');
  const words = await cpuPerMb(parts, { ways, shape: WORDS, streams: size.bulkStreams });
  const bulk = await cpuPerMb(parts, { ways, shape: BULK, streams: size.bulkStreams });
  say(`${STREAMS} streams at once`);
  const many = await manyStreams(parts, ways.gateway, size.slowWrites);
  const after = await rows.unitInserts(size.unitInserts / 2);
  const groups: FigureGroup[] = [
    { title: 'First byte of a model call', figures: latencyFigures(latency) },
    { title: 'CPU time per streamed MB, each delta in its own write', figures: cpuFigures(words) },
    { title: 'CPU time per streamed MB, 100 deltas in a write', figures: cpuFigures(bulk) },
    { title: `${STREAMS} streams at once, ${size.slowWrites} writes of each, 50 ms apart`, figures: many },
  ];
  const notes = [
    'The way through the gateway has one commit in it (the row that opens the call): about one u of the first byte.',
    'The pipe is a Node process that passes bytes and looks at none. Provider and reader share the cores with both.',
  ];
  const environment = { postgres: await rows.serverVersion(), cores: availableParallelism() };
  return { unitMs: median([...before, ...after]), groups, notes, environment };
}

async function firstBytes({ provider, calls, attempts }: Parts, ways: readonly Way[], count: number): Promise<Map<string, number[]>> {
  await provider.ask('set', SHORT);
  const times = new Map(ways.map((way) => [way.name as string, [] as number[]]));
  const warmUp = Math.floor(count / 4);
  for (let nth = -warmUp; nth < count; nth++) {
    for (const way of ways) {
      const { firstByteMs } = await calls.call(way, attemptFor(attempts, nth + warmUp));
      if (nth >= 0) times.get(way.name)?.push(firstByteMs);
    }
  }
  return times;
}

function attemptFor(attempts: readonly AttemptHeaders[], nth: number): AttemptHeaders {
  return attempts[nth % attempts.length] ?? {};
}

interface CpuRun {
  readonly ways: { readonly pipe: Way; readonly gateway: Way };
  readonly shape: StreamShape;
  readonly streams: number;
}

/** Milliseconds of CPU time per megabyte of each proxy, measured in turns so that a noisy moment hits both. */
async function cpuPerMb(parts: Parts, { ways, shape, streams }: CpuRun): Promise<{ pipe: number; gateway: number }> {
  await parts.provider.ask('set', shape);
  const spent = { pipe: 0, gateway: 0, pipeMb: 0, gatewayMb: 0 };
  const rounds = 4;
  for (let round = 0; round < rounds; round++) {
    const through = async (way: Way, usage: () => Promise<Usage>): Promise<[number, number]> => {
      const { cpuMs } = await usage();
      const bytes = await lanes(parts, { way, count: streams / rounds, from: round * streams });
      return [(await usage()).cpuMs - cpuMs, bytes / MB];
    };
    const [pipeMs, pipeMb] = await through(ways.pipe, () => parts.pipe.usage());
    const [gatewayMs, gatewayMb] = await through(ways.gateway, () => parts.server.usage());
    spent.pipe += pipeMs;
    spent.pipeMb += pipeMb;
    spent.gateway += gatewayMs;
    spent.gatewayMb += gatewayMb;
  }
  return { pipe: spent.pipe / spent.pipeMb, gateway: spent.gateway / spent.gatewayMb };
}

/** Two streams at a time; resolves with their bytes. */
async function lanes({ calls, attempts }: Parts, what: { way: Way; count: number; from: number }): Promise<number> {
  let next = 0;
  let bytes = 0;
  const lane = async (): Promise<void> => {
    while (next < what.count) bytes += (await calls.call(what.way, attemptFor(attempts, what.from + next++))).bytes;
  };
  await Promise.all([lane(), lane()]);
  return bytes;
}

/** Memory before, at the highest and after; every stream must arrive whole. */
async function manyStreams({ provider, server, calls, attempts }: Parts, way: Way, writes: number): Promise<Figure[]> {
  await provider.ask('set', { events: writes, eventsPerWrite: 1, everyMs: 50 });
  const before = (await server.usage()).rssMb;
  let highest = before;
  const watch = setInterval(() => void server.usage().then(({ rssMb }) => (highest = Math.max(highest, rssMb))), 250);
  const all = Array.from({ length: STREAMS }, (_, nth) => calls.call(way, attemptFor(attempts, nth)));
  const times = await Promise.all(all).finally(() => clearInterval(watch));
  const firstBytes = times.map((one) => one.firstByteMs);
  return [
    { name: 'streams that arrived whole', value: times.filter((one) => one.bytes === times[0]?.bytes).length, unit: '' },
    { name: 'first byte, p50', value: median(firstBytes), unit: 'ms' },
    { name: 'first byte, p99', value: percentile(firstBytes, 0.99), unit: 'ms' },
    { name: 'server RSS before', value: before, unit: 'MB' },
    { name: 'server RSS, highest', value: highest, unit: 'MB' },
    { name: 'server RSS after', value: (await server.usage()).rssMb, unit: 'MB' },
  ];
}

function latencyFigures(times: Map<string, number[]>): Figure[] {
  const of = (name: Way['name']): number[] => times.get(name) ?? [];
  const added = median(of('gateway')) - median(of('direct'));
  return [
    ...(['direct', 'plain pipe', 'gateway'] as const).flatMap((name): Figure[] => [
      { name: `${name}, p50`, value: median(of(name)), unit: 'ms' },
      { name: `${name}, p99`, value: percentile(of(name), 0.99), unit: 'ms' },
    ]),
    { name: 'gateway - direct, p50', value: added, unit: 'ms', target: { atMost: 2, text: '<= 2 ms' } },
  ];
}

function cpuFigures({ pipe, gateway: through }: { pipe: number; gateway: number }): Figure[] {
  return [
    { name: 'plain pipe', value: pipe, unit: 'ms' },
    { name: 'server with its gateway', value: through, unit: 'ms' },
    { name: 'gateway / pipe', value: through / pipe, unit: '', target: { atMost: 1.5, text: '<= 1.5' } },
  ];
}
