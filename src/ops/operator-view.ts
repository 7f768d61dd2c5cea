/**
 * Owns: what operators read, from PostgreSQL alone: the overview, pages of turns, one turn, the log of actions.
 * Does not own: what is so (db/ops), what is stuck (stuck.ts), what operators do (operator-actions.ts).
 */
import { readCalls } from '../../db/models/usage.ts';
import { type ActionRow, readActions, readActionsOf } from '../../db/ops/actions.ts';
import { type HostFacts, readHosts } from '../../db/ops/hosts.ts';
import { readCallOutcomes, readFailures, readLoad, readSandboxStates } from '../../db/ops/overview.ts';
import { readPauses } from '../../db/ops/pauses.ts';
import { readTurnEntries, readTurnEpochs, readTurnSandboxes } from '../../db/ops/timeline.ts';
import { readTurnFacts, type TurnFacts } from '../../db/ops/turn-facts.ts';
import type { Executor } from '../../db/pool.ts';
import type {
  OperatorActionView,
  OperatorTurnPage,
  OperatorTurns,
  Overview,
  ServerView,
  StuckRule,
  TimelineEvent,
  TurnsQuery,
} from '../contract/operators.ts';
import { stuckRules, toOperatorTurn } from './stuck.ts';

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
    const [hosts, pauses] = await Promise.all([readHosts(db), readPauses(db)]);
    return {
      slots: { limit: load.slots_total, held: load.slots_held, free: load.slots_free, retiring: load.slots_retiring },
      turns: { running: load.running, stopping: load.stopping, queued: load.queued, oldestWaitingMs: load.oldest_waiting_ms },
      stuck,
      ...{ failures, modelCalls, sandboxes, servers: hosts.map((host) => toServer(host, this.#selfId)) },
      pauses: pauses.map(({ paused_at: pausedAt, ...pause }) => ({ ...pause, pausedAt })),
    };
  }

  async turns({ state, limit, ...query }: TurnsQuery): Promise<OperatorTurns> {
    const before = query.before ?? null;
    if (state === 'stuck') return stuckPage(await this.#facts({ list: 'stuck', limit: JUDGED_MAX }), limit, before);
    const lists = state === 'open' ? (['queued', 'running'] as const) : ([state] as const);
    // One more than the page, so that the last page is known.
    const found = await Promise.all(lists.map((list) => this.#facts({ list, before, limit: limit + 1 })));
    const sorted = found.flat().sort((a, b) => (a.id < b.id ? 1 : -1));
    const page = sorted.slice(0, limit);
    return { turns: page.map(toOperatorTurn), nextBefore: sorted.length > limit ? (page.at(-1)?.id ?? null) : null };
  }

  /** null: there is no such turn. */
  async turn(id: string): Promise<OperatorTurnPage | null> {
    const [facts] = await this.#facts({ list: 'one', id });
    if (!facts) return null;
    const [epochs, calls, entries, sandboxes, actions] = await Promise.all([
      readTurnEpochs(this.#db, id),
      readCalls(this.#db, id),
      readTurnEntries(this.#db, id),
      readTurnSandboxes(this.#db, id),
      readActionsOf(this.#db, id),
    ]);
    const events: TimelineEvent[] = [
      { at: facts.created_at, what: 'asked', detail: `on ${facts.surface}` },
      ...(facts.started_at === null ? [] : [{ at: facts.started_at, what: 'claimed', detail: 'for the first time' }]),
      ...epochs.map((one) => ({
        at: one.first_call_at,
        what: 'attempt',
        detail: `${one.attempt} (epoch ${one.epoch}): ${one.calls} model call(s)`,
      })),
      ...calls.map(({ openedAt: at, outcome, model, tokens, cost }) => ({
        ...{ at, what: 'call' },
        detail: `${model}: ${outcome}, ${tokens.input ?? '?'} + ${tokens.cacheRead ?? 0} cached in, ${tokens.output ?? '?'} out, cost ${cost ?? 'open'}`,
      })),
      ...sandboxes.flatMap((box) => [
        { at: box.created_at, what: 'sandbox', detail: `started on ${box.host}` },
        ...(box.ended_at === null ? [] : [{ at: box.ended_at, what: 'sandbox', detail: box.start_failed ? 'could not start' : 'ended' }]),
      ]),
      ...actions.map(({ created_at: at, action, operator, reason }) => ({
        at,
        what: 'action',
        detail: `${action} by ${operator}: ${reason}`,
      })),
      ...entries.map((entry) => ({
        ...{ at: entry.created_at, what: 'entry' },
        detail: `${entry.seq} ${entry.kind}, ${entry.bytes} bytes${entry.erased ? ', erased' : ''}`,
      })),
      ...(facts.ended_at === null
        ? []
        : [{ at: facts.ended_at, what: 'ended', detail: [facts.status, facts.error_code].filter(Boolean).join(' ') }]),
    ];
    return { turn: toOperatorTurn(facts), timeline: events.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)) };
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

/** Oldest first, so a page begins after `before`. */
function stuckPage(facts: readonly TurnFacts[], limit: number, before: string | null): OperatorTurns {
  const stuck = facts.filter((one) => stuckRules(one).length > 0 && (before === null || one.id > before));
  const page = stuck.slice(0, limit);
  return { turns: page.map(toOperatorTurn), nextBefore: stuck.length > limit ? (page.at(-1)?.id ?? null) : null };
}

function toServer(host: HostFacts, selfId: string): ServerView {
  const state = host.ended_at !== null ? 'ended' : host.draining_at !== null ? 'draining' : host.suspected ? 'suspected' : 'up';
  const { id, name, build, sandboxes, running } = host;
  return { id, name, build, state, startedAt: host.started_at, sandboxes, sandboxesMax: host.sandboxes_max, running, self: id === selfId };
}

export function toActionView(row: ActionRow): OperatorActionView {
  const { id, action, target, operator, reason, state, state_before: before, state_after: after, created_at: at } = row;
  return { id, action, target, operator, reason, state, before, after, at };
}
