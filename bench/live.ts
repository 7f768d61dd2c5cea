/**
 * Owns: the scenario `live`: one partial answer to 1,000 readers, from the moment at which a sandbox sends it to the moment at which each has
 * it; what an idle stream costs in memory; and that readers who never read stay bounded.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { BenchRows } from '../db/bench/rows.ts';
import type { ServerCommands, ServerPorts } from './server-child.ts';
import type { ReaderCommands } from './stream-readers-child.ts';
import { Child } from './support/child.ts';
import { nowMs } from './support/clock.ts';
import { type Figure, median, percentile, type Report, type ScenarioOptions } from './support/figures.ts';
import { type AttemptHeaders, HeldTurns } from './support/held-turns.ts';
import { startPostgres } from './support/postgres.ts';

const DEAF_READERS = 50;
/** Just under what is published of one answer. */
const ANSWER_CHARS = 900_000;
/** Longer than the hub waits between two partial answers, so that none waits for the one before it. */
const EVERY_MS = 250;
const SETTLE_MS = 1_500;
const KB_PER_MB = 1_024;

interface Size {
  readonly readers: number;
  readonly partials: number;
  readonly unitInserts: number;
}
const FULL: Size = { readers: 1_000, partials: 80, unitInserts: 1_000 };
const QUICK: Size = { readers: 1_000, partials: 20, unitInserts: 300 };

interface Parts {
  readonly rows: BenchRows;
  readonly server: Child<ServerCommands, ServerPorts>;
  readonly readers: Child<ReaderCommands>;
  readonly writer: Writer;
}

/** A sandbox that writes an answer. */
class Writer {
  readonly #agent = new Agent();
  readonly #url: string;
  readonly #headers: AttemptHeaders;
  #offset = 0;

  constructor(agentPort: number, headers: AttemptHeaders) {
    this.#url = `http://127.0.0.1:${agentPort}/internal/agent/runs/${headers['x-agent-run']}/turn/partial`;
    this.#headers = headers;
  }

  /** Resolves with the moment before it left. */
  async write(text: string): Promise<number> {
    const body = JSON.stringify({ offset: this.#offset, text, stage: null });
    const sentMs = nowMs();
    const headers = { 'content-type': 'application/json', ...this.#headers };
    const response = await request(this.#url, { dispatcher: this.#agent, method: 'POST', headers, body });
    const answer = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`a partial answer was refused: ${response.statusCode} ${answer.slice(0, 200)}`);
    this.#offset += text.length;
    return sentMs;
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

export async function live({ quick, profileDir, say }: ScenarioOptions): Promise<Report> {
  const size = quick ? QUICK : FULL;
  const stops: (() => unknown)[] = [];
  try {
    say('starting PostgreSQL, server and readers; claiming a turn');
    return await measure(await start(stops, size, profileDir), size, say);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function start(stops: (() => unknown)[], size: Size, profileDir: string | null): Promise<Parts> {
  const scratchDir = mkdtempSync(path.join(tmpdir(), 'heph-bench-'));
  stops.push(() => rmSync(scratchDir, { recursive: true, force: true }));
  const postgres = await startPostgres();
  stops.push(() => postgres.stop());
  const rows = await BenchRows.open(postgres.url);
  stops.push(() => rows.close());
  const server = await Child.start<ServerCommands, ServerPorts>({
    name: 'server-child',
    logDir: scratchDir,
    execArgv: profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`],
    env: {
      ...{ HEPH_PORT: '0', HEPH_AGENT_PORT: '0', HEPH_OPS_PORT: '0' },
      HEPH_DATABASE_URL: postgres.url,
      HEPH_DATA_DIR: path.join(scratchDir, 'server'),
      HEPH_AGENT_CAPACITY_TURN_LEASE_TTL: '10m',
      HEPH_MENTOR_LIVE_STREAMS_PER_ACCOUNT: String(size.readers),
    },
  });
  stops.push(() => server.end());
  const readers = await Child.start<ReaderCommands>({ name: 'stream-readers-child', logDir: scratchDir });
  stops.push(() => readers.end());
  const held = new HeldTurns(server, rows);
  stops.push(() => held.close());
  const [headers = {}] = await held.gather(1);
  const writer = new Writer(server.greeting.agent, headers);
  stops.push(() => writer.close());
  return { rows, server, readers, writer };
}

async function measure(parts: Parts, size: Size, say: ScenarioOptions['say']): Promise<Report> {
  const { rows } = parts;
  const before = await rows.unitInserts(size.unitInserts / 2);
  say(`opening ${size.readers} streams`);
  const memory = await idleStreams(parts, size.readers);
  say(`${size.partials} partial answers to each of them`);
  const delays = await deliver(parts, size);
  say(`${DEAF_READERS} readers that never read, an answer of 900 KB for each`);
  const deaf = await deafReaders(parts);
  const after = await rows.unitInserts(size.unitInserts / 2);
  const groups = [
    { title: `One partial answer to ${size.readers} streams, from its sending to each reader`, figures: delayFigures(delays, size) },
    { title: 'Memory of streams', figures: [...memory, ...deaf] },
  ];
  const notes = [
    'Sender, server and readers share the cores of this machine: a reader that is busy with others notes a moment that is too late.',
  ];
  const environment = { postgres: await rows.serverVersion(), cores: availableParallelism() };
  return { unitMs: median([...before, ...after]), groups, notes, environment };
}

async function idleStreams({ server, readers }: Parts, count: number): Promise<Figure[]> {
  const warmUp = 20; // the first streams compile what the others use
  await readers.ask('open', { port: server.greeting.web, count: warmUp, deaf: false });
  await sleep(SETTLE_MS);
  const before = (await server.usage()).rssMb;
  await readers.ask('open', { port: server.greeting.web, count: count - warmUp, deaf: false });
  await sleep(SETTLE_MS);
  const kb = (((await server.usage()).rssMb - before) * KB_PER_MB) / (count - warmUp);
  return [{ name: 'one idle stream: RSS of the server', value: kb, unit: 'KB', target: { atMost: 15, text: '<= 15 KB' } }];
}

/** Delays of all readers, milliseconds. */
async function deliver({ readers, writer }: Parts, { partials }: Size): Promise<number[]> {
  const sent = new Map<number, number>();
  await readers.ask('collect');
  for (let nth = 1; nth <= partials; nth++) {
    sent.set(nth, await writer.write(`<${nth}> and a few words of the answer `));
    await sleep(EVERY_MS);
  }
  await sleep(SETTLE_MS);
  return (await readers.ask('collect')).flatMap(([nth, atMs]) => (sent.has(nth) ? [atMs - (sent.get(nth) ?? 0)] : []));
}

function delayFigures(delays: readonly number[], { readers, partials }: Size): Figure[] {
  return [
    { name: 'received', value: (delays.length / (readers * partials)) * 100, unit: '%' },
    { name: 'p50', value: median(delays), unit: 'ms' },
    { name: 'p99', value: percentile(delays, 0.99), unit: 'ms', target: { atMost: 25, text: '<= 25 ms' } },
  ];
}

/** A reader that takes nothing holds at most what its queue and its socket hold. */
async function deafReaders({ server, readers, writer }: Parts): Promise<Figure[]> {
  await readers.ask('close');
  await sleep(SETTLE_MS);
  await readers.ask('open', { port: server.greeting.web, count: DEAF_READERS, deaf: true });
  await sleep(SETTLE_MS);
  const before = (await server.usage()).rssMb;
  const text = 'a long answer '.repeat(2_500);
  let highest = before;
  for (let written = 0; written < ANSWER_CHARS; written += text.length) {
    await writer.write(text);
    await sleep(EVERY_MS / 2);
    highest = Math.max(highest, (await server.usage()).rssMb);
  }
  return [{ name: `${DEAF_READERS} readers that never read: RSS of the server, more than before`, value: highest - before, unit: 'MB' }];
}
