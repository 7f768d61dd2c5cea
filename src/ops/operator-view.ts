/**
 * Owns: what operators read, from PostgreSQL alone: the overview, pages of turns, one turn, the log of actions.
 * Does not own: what is so (db/ops), what is stuck (stuck.ts), the other pages (operator-pages.ts), what operators do (operator-actions.ts).
 */
import { type ActionRow, readActions } from '../../db/ops/actions.ts';
import { type HostFacts, readHosts } from '../../db/ops/hosts.ts';
import { readCallOutcomes, readFailures, readLoad, readSandboxStates } from '../../db/ops/overview.ts';
import { readPauses } from '../../db/ops/pauses.ts';
import { readTurnFacts, type TurnFacts, type TurnFilter } from '../../db/ops/turn-facts.ts';
import type { Executor } from '../../db/pool.ts';
import { outboxSize } from '../../db/slack/outbox.ts';
import type {
  OperatorActionView,
  OperatorTurnPage,
  OperatorTurns,
  Overview,
  ServerView,
  StuckRule,
  TurnFilterInput,
  TurnsQuery,
} from '../contract/operators.ts';
import { stuckRules, toOperatorTurn, whyWaiting } from './stuck.ts';
import { readTimeline } from './turn-timeline.ts';

/** Turns that are judged for the overview and the list of stuck ones, oldest first. */
export const JUDGED_MAX = 1_000;

export class OperatorView {
  readonly #db: Executor;
  readonly #selfId: string;

  /** `selfId`: this server among the servers. */
  constructor(db: Executor, selfId: string) {
    this.#db = db;
    this.#selfId = selfId;
  }

  async overview(): Promise<Overview> {
    const db = this.#db;
    const [load, stuck] = await Promise.all([readLoad(db), countStuck(db)]);
    const [failures, modelCalls, sandboxes] = await Promise.all([readFailures(db), readCallOutcomes(db), readSandboxStates(db)]);
    const [hosts, pauses, outbox] = await Promise.all([readHosts(db), readPauses(db), outboxSize(db)]);
    const { pending, uncertain } = outbox;
    return {
      slots: { limit: load.slots_total, held: load.slots_held, free: load.slots_free, retiring: load.slots_retiring },
      turns: { running: load.running, stopping: load.stopping, queued: load.queued, oldestWaitingMs: load.oldest_waiting_ms },
      stuck,
      outbox: { pending, uncertain, oldestMs: pending + uncertain === 0 ? null : Math.round(outbox.oldestAgeS * 1_000) },
      ...{ failures, modelCalls, sandboxes, servers: hosts.map((host) => toServer(host, this.#selfId)) },
      pauses: pauses.map(({ paused_at: pausedAt, ...pause }) => ({ ...pause, pausedAt })),
    };
  }

  async turns({ limit, sort, ...query }: TurnsQuery): Promise<OperatorTurns> {
    const { before = null, ...asked } = query;
    const { state, why, rule } = asked;
    const oldestFirst = sort === 'oldest';
    if (state === 'stuck' || why !== undefined || rule !== undefined) return this.#judgedPage(asked, { limit, before });
    // One more than the page, so that the last page is known.
    const page = { before, limit: limit + 1, oldestFirst, filter: filterOf(asked) };
    const found = await Promise.all(LISTS[state].map((list) => this.#facts({ list, ...page })));
    const sorted = found.flat().sort((a, b) => (a.id < b.id === oldestFirst ? -1 : 1));
    const shown = sorted.slice(0, limit);
    return { turns: shown.map(toOperatorTurn), nextBefore: sorted.length > limit ? (shown.at(-1)?.id ?? null) : null };
  }

  /** What must be judged turn by turn: of the oldest that the rest of the filter has. Oldest first, so a page begins after `before`. */
  async #judgedPage(asked: TurnFilterInput, { limit, before }: { limit: number; before: string | null }): Promise<OperatorTurns> {
    const judged = await this.#judged(asked, before);
    const shown = judged.turns.slice(0, limit);
    const next = judged.turns.length > limit ? (shown.at(-1)?.id ?? null) : judged.goOnAfter;
    return { turns: shown.map(toOperatorTurn), nextBefore: next };
  }

  async #judged(
    asked: TurnFilterInput,
    before: string | null,
  ): Promise<{ readonly turns: readonly TurnFacts[]; readonly goOnAfter: string | null }> {
    const { state, why, rule } = asked;
    const [filter, limit] = [filterOf(asked), JUDGED_MAX];
    const lists =
      state === 'stuck'
        ? [await this.#facts({ list: 'stuck', limit, filter })]
        : await Promise.all(LISTS[state].map((list) => this.#facts({ list, before, limit, filter, oldestFirst: true })));
    const facts = lists
      .flat()
      .filter(({ id }) => before === null || id > before)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, JUDGED_MAX);
    const turns = facts.filter((one) => {
      const fired = stuckRules(one);
      if (state === 'stuck' && fired.length === 0) return false;
      return (why === undefined || whyWaiting(one) === why) && (rule === undefined || fired.includes(rule));
    });
    const full = state !== 'stuck' && facts.length === JUDGED_MAX;
    return { turns, goOnAfter: full ? (facts.at(-1)?.id ?? null) : null };
  }

  /** The turns of a filter, oldest first, at most `limit` of them. */
  async matching(asked: TurnFilterInput, limit: number): Promise<readonly TurnFacts[]> {
    return (await this.#judged(asked, null)).turns.slice(0, limit);
  }

  /** null: there is no such turn. */
  async turn(id: string): Promise<OperatorTurnPage | null> {
    const [facts] = await this.#facts({ list: 'one', id });
    return facts ? { turn: toOperatorTurn(facts), timeline: await readTimeline(this.#db, facts) } : null;
  }

  async actions(before: string | null, limit: number): Promise<{ actions: readonly OperatorActionView[]; nextBefore: string | null }> {
    const rows = await readActions(this.#db, before, limit + 1);
    const page = rows.slice(0, limit);
    return { actions: page.map(toActionView), nextBefore: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
  }

  #facts(choice: Parameters<typeof readTurnFacts>[1]): Promise<readonly TurnFacts[]> {
    return readTurnFacts(this.#db, choice);
  }
}

/** Turns that are stuck, by rule. */
export async function countStuck(db: Executor): Promise<Overview['stuck']> {
  const facts = await readTurnFacts(db, { list: 'stuck', limit: JUDGED_MAX });
  const counts = new Map<StuckRule, number>();
  for (const rule of facts.flatMap(stuckRules)) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  return { byRule: [...counts].map(([name, count]) => ({ name, count })), lookedAt: facts.length, complete: facts.length < JUDGED_MAX };
}

const LISTS = {
  open: ['queued', 'running'],
  queued: ['queued'],
  running: ['running'],
  ended: ['ended'],
} as const;

function filterOf({ workspace, surface, conversation }: TurnFilterInput): TurnFilter {
  return { workspace: workspace ?? null, surface: surface ?? null, conversation: conversation ?? null };
}

function toServer(host: HostFacts, selfId: string): ServerView {
  const state = host.ended_at !== null ? 'ended' : host.draining_at !== null ? 'draining' : host.suspected ? 'suspected' : 'up';
  const { id, name, build, sandboxes, running } = host;
  return { id, name, build, state, startedAt: host.started_at, sandboxes, sandboxesMax: host.sandboxes_max, running, self: id === selfId };
}

export function toActionView(row: ActionRow): OperatorActionView {
  const { id, action, target, operator, reason, state, state_before: before, state_after: after, created_at: at } = row;
  return { id, action, target, operator, reason, state, before, after, at, batchId: row.batch_id };
}
