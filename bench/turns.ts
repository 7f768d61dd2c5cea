/**
 * Owns: the scenario `turns`: what a turn costs on one server, from the question to the event that it has ended.
 * The steps, in order: unit, activation, memory of actors, paced turns of one conversation, closed loops, unit again.
 */
import { availableParallelism } from 'node:os';
import type { ActorMemoryCommands } from './actor-memory-child.ts';
import { measureActivations } from './support/activation.ts';
import { Child } from './support/child.ts';
import { type FigureGroup, median, type Report, type ScenarioOptions } from './support/figures.ts';
import { conversationsFor, type LoadOptions, type LoadResult, Loads } from './support/load.ts';
import { Rig } from './support/rig.ts';
import { activationFigures, latencyFigures, loadFigures, memoryFigures, stepFigures } from './support/turn-figures.ts';

interface Size {
  readonly unitInserts: number;
  readonly activations: number;
  readonly actors: number;
  /** Unmeasured at first: a server that just began runs code that is not compiled yet. */
  readonly warmUp: LoadOptions;
  /** Long enough a pause that the runner's next pull is parked. */
  readonly paced: LoadOptions;
  readonly pacedTwoCalls: LoadOptions;
  readonly loops: readonly LoadOptions[];
  /** Longest time of one load, for a machine that is slow or busy. */
  readonly loadMs: number;
}

const loop = (conversations: number, turns: number): LoadOptions => ({ conversations, turns, modelCalls: 1, pauseMs: 0 });
const paced = (turns: number, modelCalls: number): LoadOptions => ({ conversations: 1, turns, modelCalls, pauseMs: 15 });

const FULL: Size = {
  unitInserts: 2_000,
  activations: 500,
  actors: 10_000,
  warmUp: loop(8, 480),
  paced: paced(400, 1),
  pacedTwoCalls: paced(160, 2),
  loops: [loop(1, 300), loop(8, 1_120), loop(32, 1_280)],
  loadMs: 15_000,
};
const QUICK: Size = {
  unitInserts: 600,
  activations: 100,
  actors: 2_000,
  warmUp: loop(8, 160),
  paced: paced(60, 1),
  pacedTwoCalls: paced(20, 2),
  loops: [loop(1, 40), loop(8, 160), loop(32, 320)],
  loadMs: 3_000,
};

const SHORT_ENTRIES = 10;
const LONG_ENTRIES = 10_000;

export async function turns({ quick, profileDir, say }: ScenarioOptions): Promise<Report> {
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
  const { rows, server } = rig.parts;
  const idleRssMb = (await server.usage()).rssMb;
  say('u: single-row INSERT commits');
  const before = await rows.unitInserts(size.unitInserts / 2);
  const still = await measureStill(rig, size, say);
  const loads = await measureLoads(rig, size, say);
  const loadedRssMb = (await server.usage()).rssMb;
  const after = await rows.unitInserts(size.unitInserts / 2);
  const unitMs = median([...before, ...after]);
  const groups: FigureGroup[] = [
    { title: 'One conversation, a warm parked sandbox', figures: latencyFigures(loads.paced, loads.pacedTwoCalls, unitMs) },
    { title: 'The steps of such a turn, p50', figures: stepFigures(loads.paced) },
    ...loads.loops.map(({ title, result }) => ({ title, figures: loadFigures(result) })),
    { title: 'Activation of a conversation actor', figures: activationFigures(still.short, still.long) },
    { title: 'Memory', figures: memoryFigures({ idleRssMb, loadedRssMb, actorBytes: still.actorBytes }) },
  ];
  return { unitMs, groups, notes: notes({ before: median(before), after: median(after) }), environment: await environment(rig) };
}

interface MeasuredLoads {
  readonly paced: LoadResult;
  readonly pacedTwoCalls: LoadResult;
  readonly loops: readonly { readonly title: string; readonly result: LoadResult }[];
}

async function measureLoads(rig: Rig, size: Size, say: ScenarioOptions['say']): Promise<MeasuredLoads> {
  const wanted = [size.warmUp, size.paced, size.pacedTwoCalls, ...size.loops];
  const count = wanted.reduce((sum, options) => sum + conversationsFor(options), 0);
  say(`a first turn in each of ${count} conversations`);
  const loads = await Loads.prepare(rig, count, size.loadMs);
  const run = (options: LoadOptions): Promise<LoadResult> => {
    const { turns, conversations, modelCalls, pauseMs } = options;
    say(`${turns} turns, at once ${conversations}, model calls ${modelCalls}, pause ${pauseMs} ms`);
    return loads.run(options);
  };
  await run(size.warmUp);
  const one = await run(size.paced);
  const two = await run(size.pacedTwoCalls);
  const loops = [];
  for (const options of size.loops) {
    loops.push({ title: `Closed loop, ${options.conversations} conversations at once`, result: await run(options) });
  }
  return { paced: one, pacedTwoCalls: two, loops };
}

/** What needs no turn. */
async function measureStill(
  rig: Rig,
  size: Size,
  say: ScenarioOptions['say'],
): Promise<{ short: number[]; long: number[]; actorBytes: number }> {
  const { rows, postgres, scratchDir } = rig.parts;
  say(`activation of conversations with ${SHORT_ENTRIES} and ${LONG_ENTRIES} entries`);
  const owner = await rows.owner();
  const main = await rows.filled(owner, LONG_ENTRIES);
  const parent = { ...owner, conversationId: main.conversationId, entryId: main.firstEntryId };
  const thread = await rows.filled(owner, SHORT_ENTRIES, parent);
  const ids = await rows.threads(parent, size.actors);
  await rows.analyze();
  const [short = [], long = []] = await measureActivations(postgres.url, [thread.conversationId, main.conversationId], size.activations);
  say(`memory of ${size.actors} idle conversation actors`);
  const options = { name: 'actor-memory-child', logDir: scratchDir, execArgv: ['--expose-gc'] };
  const child = await Child.start<ActorMemoryCommands>(options);
  try {
    return { short, long, actorBytes: await child.ask('measure', { url: postgres.url, ids }) };
  } finally {
    await child.end();
  }
}

function notes(unit: { readonly before: number; readonly after: number }): string[] {
  return [
    `u was ${unit.before.toFixed(2)} ms before the turns and ${unit.after.toFixed(2)} ms after them.`,
    'CPU times and latencies of a run in which other programs took much of the cores are worth little: measure again.',
    'The provider is an HTTP server in a process of its own that answers at once (20 pieces, one write). The runner is a stub without Pi.',
    'People, runner, provider, server and PostgreSQL share the cores of this machine: turns/s is not what a server alone could do.',
    'A conversation is followed by a fresh one after 20 turns, so paths are short. Statements include sweeps of the idle second.',
  ];
}

async function environment(rig: Rig): Promise<Report['environment']> {
  return { postgres: await rig.parts.rows.serverVersion(), embedded: rig.parts.postgres.embedded, cores: availableParallelism() };
}
