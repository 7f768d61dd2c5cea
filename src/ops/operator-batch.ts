/**
 * Owns: one action on every turn of a filter. The operator says how many turns they mean; another number is refused. All rows of the log are
 * written before the first deed, so that a batch that was cut off goes on with its key, and only with its own turns.
 * rule: R17 (a row and a fence for each turn)
 */
import { type ActionRow, beginBatch, readBatch } from '../../db/ops/actions.ts';
import type { TurnFacts } from '../../db/ops/turn-facts.ts';
import type { Executor } from '../../db/pool.ts';
import {
  BATCH_MAX_TURNS,
  type BatchInput,
  type BatchPreview,
  type BatchPreviewInput,
  type BatchResult,
} from '../contract/operator-batch.ts';
import type { TurnAction } from '../contract/operators.ts';
import { asFault, RuntimeFault } from '../kernel/faults.ts';
import { uuidv7 } from '../kernel/ids.ts';
import { errorKind, type Log } from '../kernel/log.ts';
import { noteOf, planTurnAction } from './action-plan.ts';
import { batchIdOf } from './batch-id.ts';
import { keyReused, type OperatorActions } from './operator-actions.ts';
import type { OperatorView } from './operator-view.ts';

export interface BatchOrder extends BatchInput {
  readonly operator: string;
}

/** Deeds at the same time: each takes a connection for a moment, and others operate, too. */
const AT_ONCE = 2;

type Result = BatchResult['results'][number];

export class OperatorBatch {
  readonly #deps: { readonly db: Executor; readonly log: Log; readonly view: OperatorView; readonly actions: OperatorActions };

  constructor(deps: { readonly db: Executor; readonly log: Log; readonly view: OperatorView; readonly actions: OperatorActions }) {
    this.#deps = deps;
  }

  async preview({ action, filter }: BatchPreviewInput): Promise<BatchPreview> {
    const facts = await this.#deps.view.matching(filter, BATCH_MAX_TURNS + 1);
    const effects = new Map<string, { effect: string; allowed: boolean; count: number }>();
    for (const plan of facts.map((one) => planTurnAction(action, one))) {
      const known = effects.get(plan.effect) ?? { ...plan, count: 0 };
      effects.set(plan.effect, { ...known, count: known.count + 1 });
    }
    const allowed = [...effects.values()].reduce((sum, one) => sum + (one.allowed ? one.count : 0), 0);
    return { count: facts.length, tooMany: facts.length > BATCH_MAX_TURNS, allowed, effects: [...effects.values()] };
  }

  /** Throws ACTION_REFUSED with the new `count` when the filter has another number of turns by now. */
  async run(order: BatchOrder): Promise<BatchResult> {
    const { db, log } = this.#deps;
    const { action, filter, count, operator, reason, idempotencyKey } = order;
    const id = batchIdOf(idempotencyKey);
    const before = await readBatch(db, id);
    if (before.length > 0) return this.#carryOut(id, { action, rows: before, refused: [], repeated: true });
    const facts = await this.#deps.view.matching(filter, BATCH_MAX_TURNS + 1);
    if (facts.length !== count) throw otherCount(facts.length);
    const planned = facts.map((one) => ({ facts: one, plan: planTurnAction(action, one) }));
    const refused = planned.filter(({ plan }) => !plan.allowed).map(({ facts: { id: turn }, plan }) => refusedResult(turn, plan.effect));
    const chosen = planned.filter(({ plan }) => plan.allowed).map(({ facts: one }) => one);
    if (chosen.length === 0) return { batchId: null, repeated: false, results: refused };
    log.warn('operator batch', { action, turns: chosen.length, operator });
    await beginBatch(
      db,
      { id, action, operator, reason },
      chosen.map((one) => rowOf(one, idempotencyKey)),
    );
    return this.#carryOut(id, { action, rows: await readBatch(db, id), refused, repeated: false });
  }

  async #carryOut(
    batchId: string,
    batch: { action: TurnAction; rows: readonly ActionRow[]; refused: readonly Result[]; repeated: boolean },
  ): Promise<BatchResult> {
    if (batch.rows.some(({ action }) => action !== batch.action)) throw keyReused();
    const waiting = [...batch.rows];
    const results: Result[] = [];
    const worker = async () => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) results.push(await this.#one(batch.action, row));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return { batchId, repeated: batch.repeated, results: [...results, ...batch.refused] };
  }

  /** A turn whose deed fails leaves its row BEGUN and does not keep the others from theirs. */
  async #one(action: TurnAction, row: ActionRow): Promise<Result> {
    const { actions, log } = this.#deps;
    try {
      const done =
        row.state === 'DONE' ? row : await actions.carryOut(row, actions.deeds.ofTurn(action, await actions.deeds.facts(row.target)));
      return { turn: row.target, outcome: 'done', detail: String(done.state_after?.['status'] ?? '') };
    } catch (error) {
      log.warn('operator action failed', { action, target: row.target, error: errorKind(error) });
      return { turn: row.target, outcome: 'failed', detail: asFault(error).publicMessage };
    }
  }
}

const refusedResult = (turn: string, detail: string): Result => ({ turn, outcome: 'refused', detail });

function rowOf(facts: TurnFacts, key: string) {
  return { id: uuidv7<'action'>(), idempotencyKey: `${key} ${facts.id}`, target: facts.id, before: noteOf(facts) };
}

function otherCount(count: number): RuntimeFault {
  const text =
    count > BATCH_MAX_TURNS
      ? `More than ${BATCH_MAX_TURNS} turns match. Narrow the filter down: a batch has at most ${BATCH_MAX_TURNS}.`
      : `${count} turns match now. Look at them again, and say ${count} if you mean these.`;
  return new RuntimeFault('ACTION_REFUSED', text, { extra: { count } });
}
