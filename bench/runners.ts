/**
 * Owns: the scenario `runners`: real runners of this machine. From the claim to the first model request in a conversation whose sandbox was a warm
 * runner a moment ago, and the memory of each runner. The server is `node src/main.ts` with its own isolation; the provider is real HTTP.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { BenchRows } from '../db/bench/rows.ts';
import { runnerPids, withDescendants } from '../spec/support/flow.ts';
import { answer, startModelServer } from '../spec/support/model-server.ts';
import { WebClient } from '../spec/support/person.ts';
import { removeDataDirs, ServerProcess } from '../spec/support/server-process.ts';
import { type Figure, median, percentile, type Report, type ScenarioOptions } from './support/figures.ts';
import { startPostgres } from './support/postgres.ts';

/** Runners that wait unassigned. */
const WARM = 2;
const CONVERSATIONS = { full: 10, quick: 5 };
const UNIT_INSERTS = 500;
/** Issue, "must show": a conversation's first model request after its claim on a warm runner. */
const FIRST_REQUEST_TARGET = { atMost: 250, text: '<= 250 ms' };
const LOOK_EVERY_MS = 20;

interface Memory {
  readonly rssMb: number;
  /** What is shared is divided by those who share it. Missing where the system does not tell. */
  readonly pssMb: number;
}

export async function runners({ quick, say }: ScenarioOptions): Promise<Report> {
  const stops: (() => unknown)[] = [removeDataDirs];
  const count = quick ? CONVERSATIONS.quick : CONVERSATIONS.full;
  try {
    say(`starting PostgreSQL, a provider and a server with ${WARM} warm runners`);
    const postgres = await startPostgres();
    stops.push(() => postgres.stop());
    const rows = await BenchRows.open(postgres.url);
    stops.push(() => rows.close());
    const arrivals = new Map<string, number>();
    const model = await startModelServer((seen, n) => {
      if (!arrivals.has(seen.question)) arrivals.set(seen.question, Date.now());
      return answer()(seen, n);
    });
    stops.push(() => model.close());
    const env = {
      ...{ HEPH_DATABASE_URL: postgres.url, HEPH_LLM_API: 'openai-completions', HEPH_LLM_BASE_URL: model.url, HEPH_LLM_API_KEY: 'k' },
      ...{ HEPH_LLM_MODEL: 'bench', HEPH_SANDBOX_WARM: String(WARM), HEPH_SANDBOX_MAX: String(count + 1), HEPH_LOG_LEVEL: 'debug' },
    };
    const server = await ServerProcess.start({ env });
    stops.push(() => server.stop());
    return await measure({ server, rows, arrivals, count, say });
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

interface Parts {
  readonly server: ServerProcess;
  readonly rows: BenchRows;
  /** When the first model request of a question arrived, milliseconds since the Unix epoch: the clock of the database on this machine. */
  readonly arrivals: ReadonlyMap<string, number>;
  readonly count: number;
  readonly say: ScenarioOptions['say'];
}

async function measure({ server, rows, arrivals, count, say }: Parts): Promise<Report> {
  const unitMs = median(await rows.unitInserts(UNIT_INSERTS));
  const person = new WebClient(`http://127.0.0.1:${server.port}`);
  await warmAgain(server, WARM);
  const warm = memories(server.pid);
  const sinceClaim: number[] = [];
  const sinceQuestion: number[] = [];
  const main = await person.ask('The first one.');
  await person.waitForTurn(main.turn.id);
  const parent = { ...(await rows.localMember()), conversationId: main.turn.conversationId, entryId: main.entry.id };
  const threads = await rows.threads(parent, count);
  say(`a first question in each of ${count} conversations, each on a warm runner`);
  for (const [n, conversationId] of threads.entries()) {
    await warmAgain(server, WARM + 1 + n);
    const text = `Question ${n} of a new conversation`;
    const { turn } = await person.ask(text, { conversationId });
    const done = await person.waitForTurn(turn.id);
    const arrivedMs = arrivals.get(text) ?? Number.NaN;
    sinceClaim.push(arrivedMs - Date.parse(done.startedAt ?? ''));
    sinceQuestion.push(arrivedMs - Date.parse(done.createdAt));
  }
  const used = memories(server.pid);
  const isolation = await tierOf(server);
  const groups = [
    {
      title: `First model request of a conversation, warm runner (${isolation})`,
      figures: [
        { name: 'after the claim, p50', value: median(sinceClaim), unit: 'ms' as const, target: FIRST_REQUEST_TARGET },
        { name: 'after the claim, most', value: Math.max(...sinceClaim), unit: 'ms' as const },
        { name: 'after the question, p50', value: median(sinceQuestion), unit: 'ms' as const },
        { name: 'after the question, p90', value: percentile(sinceQuestion, 0.9), unit: 'ms' as const },
      ],
    },
    { title: `Memory of one runner, ${warm.length} that wait`, figures: memoryFigures(warm) },
    { title: `Memory of one runner, ${used.length} of which most have answered`, figures: memoryFigures(used) },
  ];
  const notes = [
    'The pool is HEPH_SANDBOX_WARM, the idle time HEPH_SANDBOX_IDLE. A runner is its process and, isolated, its layers.',
    'The claim is timed by the database, the request by the provider when it has all of it; both read the clock of this machine, to the millisecond.',
    'RSS counts shared pages in each process, PSS its share of them.',
  ];
  return { unitMs, groups, notes, environment: { postgres: await rows.serverVersion(), cores: availableParallelism() } };
}

/** Resolves when so many runners have become warm since the start: the one that was taken has its successor. */
async function warmAgain(server: ServerProcess, count: number): Promise<void> {
  while (server.lines.filter(({ event }) => event === 'runner_warm').length < count) await sleep(LOOK_EVERY_MS);
}

function memories(serverPid: number): Memory[] {
  return runnerPids(serverPid).map((pid) => {
    const all = withDescendants(pid).map(memoryOf);
    return { rssMb: sum(all.map(({ rssMb }) => rssMb)), pssMb: sum(all.map(({ pssMb }) => pssMb)) };
  });
}

function memoryOf(pid: number): Memory {
  try {
    const told = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(told)?.[1] ?? Number.NaN) / 1024;
    return { rssMb: mb('Rss'), pssMb: mb('Pss') };
  } catch {
    return { rssMb: Number.NaN, pssMb: Number.NaN }; // another system, or it has just ended
  }
}

function memoryFigures(all: readonly Memory[]): Figure[] {
  return [
    { name: 'RSS, median', value: median(all.map(({ rssMb }) => rssMb)), unit: 'MB' },
    { name: 'PSS, median', value: median(all.map(({ pssMb }) => pssMb)), unit: 'MB' },
  ];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

async function tierOf(server: ServerProcess): Promise<string> {
  const answer = (await (await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)).json()) as { parts: { sandboxes: { why: string } } };
  return answer.parts.sandboxes.why.split(':')[0] ?? '';
}
