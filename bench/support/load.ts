/**
 * Owns: loads: so many conversations at once, each asking its next question when its last turn has ended.
 * A conversation is used for a few turns and then followed by a fresh one whose sandbox waits already, so that the length of a path does not
 * depend on how fast or how long a load runs.
 * Does not own: reading what it cost (costs.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Counters } from '../../db/bench/rows.ts';
import { nowMs } from './clock.ts';
import { type Costs, costsOf, readCpu, settledCounters } from './costs.ts';
import type { Asked } from './people.ts';
import type { Rig } from './rig.ts';

export interface LoadOptions {
  /** Conversations at once. */
  readonly conversations: number;
  readonly turns: number;
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

export interface LoadResult extends Costs {
  readonly turns: readonly TurnTimes[];
  readonly turnsPerSecond: number;
}

const TURNS_PER_CONVERSATION = 20;
/** Conversations whose first turn (which starts their sandbox) runs at the same time. */
const WARM_UP_AT_ONCE = 8;

/** Conversations that a load uses up. */
export function conversationsFor({ conversations, turns }: LoadOptions): number {
  return Math.ceil(turns / TURNS_PER_CONVERSATION / conversations) * conversations;
}

export class Loads {
  readonly #rig: Rig;
  readonly #atMostMs: number;
  /** Threads whose sandbox waits. */
  readonly #ready: string[];
  #counters: Counters | null = null;

  private constructor(rig: Rig, ready: string[], atMostMs: number) {
    this.#rig = rig;
    this.#ready = ready;
    this.#atMostMs = atMostMs;
  }

  /** Makes `count` threads of the local account and gives each its sandbox. `atMostMs`: after this time a load asks nothing more. */
  static async prepare(rig: Rig, count: number, atMostMs: number): Promise<Loads> {
    const { people, rows } = rig.parts;
    const first = await people.ask(null);
    const parent = { ...(await rows.localMember()), conversationId: first.conversationId, entryId: first.entryId };
    const ids = await rows.threads(parent, count);
    await inLanes(ids, WARM_UP_AT_ONCE, (id) => people.ask(id));
    await rows.analyze(); // else plans made for empty tables last until autovacuum comes, which is some time in the first minutes
    return new Loads(rig, ids, atMostMs);
  }

  /** Runs one load. Everything that the server does between two loads counts for the later one: do nothing there. */
  async run(options: LoadOptions): Promise<LoadResult> {
    const { people, runner, provider } = this.#rig.parts;
    await this.#rig.setModelCalls(options.modelCalls);
    const countersBefore = this.#counters ?? (await settledCounters(this.#rig));
    await Promise.all([runner.ask('collect'), provider.ask('collect')]);
    const before = await readCpu(this.#rig);
    const asked: Asked[] = [];
    let left = options.turns;
    const isOver = (): boolean => left <= 0 || nowMs() - before.atMs > this.#atMostMs;
    const use = async (id: string): Promise<void> => {
      for (let nth = 0; nth < TURNS_PER_CONVERSATION && !isOver(); nth++) {
        left -= 1;
        if (options.pauseMs > 0) await sleep(options.pauseMs);
        asked.push(await people.ask(id));
      }
    };
    await inLanes(this.#ready.splice(0, conversationsFor(options)), options.conversations, use);
    const after = await readCpu(this.#rig);
    this.#counters = await settledCounters(this.#rig);
    const costs = costsOf(asked.length, { before, after }, { before: countersBefore, after: this.#counters });
    return { ...costs, turns: await this.#joined(asked), turnsPerSecond: asked.length / ((after.atMs - before.atMs) / 1_000) };
  }

  /** What people, runner and provider each saw of a turn, as one. */
  async #joined(asked: readonly Asked[]): Promise<TurnTimes[]> {
    const { runner, provider } = this.#rig.parts;
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
}

/** Does `work` for every id, `lanes` at once. */
async function inLanes(ids: readonly string[], lanes: number, work: (id: string) => Promise<unknown>): Promise<void> {
  const waiting = [...ids];
  const lane = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) await work(id);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
