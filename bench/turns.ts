/**
 * Owns: the scenario `turns`: what a turn costs on one server, from the question to the event that it has ended.
 * The steps, in order: unit, activation, memory of actors, paced turns of one conversation, closed loops, unit again.
 */
import { availableParallelism } from 'node:os';
import type { ActorMemoryCommands } from './actor-memory-child.ts';
import { measureActivations } from './support/activation.ts';
import { Child } from './support/child.ts';
import { type FigureGroup, median, type Report, type ScenarioOptions } from './support/figures.ts';
import { type LoadOptions, type LoadResult, runLoad } from './support/load.ts';
import { Rig } from './support/rig.ts';
import { activationFigures, latencyFigures, loadFigures, memoryFigures, stepFigures } from './support/turn-figures.ts';

interface Size {
  readonly unitInserts: number;
  readonly activations: number;
  readonly actors: number;
  /** Turns before anything is measured: a server that just began runs code that is not compiled yet. */
  readonly warmUpTurns: number;
  readonly pacedTurns: number;
  readonly pacedTurnsTwoCalls: number;
  /** Closed loops: conversations at once, and turns. */
  readonly loops: readonly (readonly [conversations: number, turns: number])[];
  /** Longest time of one load, for a machine that is slow or busy. */
  readonly loadMs: number;
}

const FULL: Size = {
  unitInserts: 2_000,
  activations: 500,
  actors: 10_000,
  warmUpTurns: 500,
  pacedTurns: 400,
  pacedTurnsTwoCalls: 150,
  loops: [
    [1, 300],
    [8, 1_000],
    [32, 1_200],
  ],
  loadMs: 20_000,
};
const QUICK: Size = {
  unitInserts: 600,
  activations: 100,
  actors: 2_000,
  warmUpTurns: 160,
  pacedTurns: 60,
  pacedTurnsTwoCalls: 30,
  loops: [
    [1, 40],
    [8, 160],
    [32, 192],
  ],
  loadMs: 4_000,
};

const SHORT_ENTRIES = 10;
const LONG_ENTRIES = 10_000;
/** Long enough that the runner's next pull is parked. */
const PAUSE_MS = 15;

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
  const { rows, server, people } = rig.parts;
  const idleRssMb = (await server.usage()).rssMb;
  say('u: single-row INSERT commits');
  const before = await rows.unitInserts(size.unitInserts / 2);
  const still = await measureStill(rig, size, say);
  const first = await people.ask(null);
  const parent = { ...(await rows.localMember()), conversationId: first.conversationId, entryId: first.entryId };
  const load = (options: Omit<LoadOptions, 'atMostMs'>): Promise<LoadResult> => {
    say(`${options.turns} turns, at once ${options.conversations}, model calls ${options.modelCalls}, pause ${options.pauseMs} ms`);
    return runLoad(rig, parent, { ...options, atMostMs: size.loadMs });
  };
  await load({ conversations: 8, turns: size.warmUpTurns, modelCalls: 1, pauseMs: 0 });
  const paced = await load({ conversations: 1, turns: size.pacedTurns, modelCalls: 1, pauseMs: PAUSE_MS });
  const pacedTwo = await load({ conversations: 1, turns: size.pacedTurnsTwoCalls, modelCalls: 2, pauseMs: PAUSE_MS });
  const loops: FigureGroup[] = [];
  for (const [conversations, turns] of size.loops) {
    const result = await load({ conversations, turns, modelCalls: 1, pauseMs: 0 });
    loops.push({ title: `Closed loop, ${conversations} conversations at once`, figures: loadFigures(result) });
  }
  const loadedRssMb = (await server.usage()).rssMb;
  const after = await rows.unitInserts(size.unitInserts / 2);
  const unitMs = median([...before, ...after]);
  const groups: FigureGroup[] = [
    { title: 'One conversation, a warm parked sandbox', figures: latencyFigures(paced, pacedTwo, unitMs) },
    { title: 'The steps of such a turn, p50', figures: stepFigures(paced) },
    ...loops,
    { title: 'Activation of a conversation actor', figures: activationFigures(still.short, still.long) },
    { title: 'Memory', figures: memoryFigures({ idleRssMb, loadedRssMb, actorBytes: still.actorBytes }) },
  ];
  const unitSpread = { before: median(before), after: median(after) };
  return { unitMs, groups, notes: notes(unitSpread), environment: await environment(rig) };
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
