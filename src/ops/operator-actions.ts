/**
 * Owns: the log around what operators do: the preview, the row, the deed, what is so afterwards.
 * The row is written first (its `state_before` names run and epoch) and closed last. A cut between leaves it BEGUN; a repeat with its key does
 * the deed again, which the fence of its statement makes harmless, and closes it.
 * Does not own: the deeds (operator-deeds.ts), many turns at once (operator-batch.ts), revealing (reveal.ts).
 */
import { type ActionRow, beginAction, findAction, finishAction } from '../../db/ops/actions.ts';
import type { ActionPreview, ActionResult } from '../contract/operators.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { uuidv7 } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { type ActionAsk, type Because, type Deed, type DeedDeps, Deeds } from './operator-deeds.ts';
import { toActionView } from './operator-view.ts';

export interface OperatorActionsDeps extends DeedDeps {
  readonly log: Log;
}

/** `operator`: `local`, `token:…`, or an account. */
export interface ActionOrder extends ActionAsk, Because {
  readonly idempotencyKey: string;
}

export class OperatorActions {
  readonly #deps: OperatorActionsDeps;
  readonly deeds: Deeds;

  constructor(deps: OperatorActionsDeps) {
    this.#deps = deps;
    this.deeds = new Deeds(deps);
  }

  async preview(ask: ActionAsk): Promise<ActionPreview> {
    const { target, plan, before } = await this.deeds.of(ask);
    return { action: ask.action, target, ...plan, before };
  }

  /** Throws ACTION_REFUSED when it does not fit what is there, KEY_REUSED when the key was for something else. */
  async run(order: ActionOrder): Promise<ActionResult> {
    const { db, log } = this.#deps;
    const deed = await this.deeds.of(order);
    const known = await findAction(db, order.idempotencyKey);
    if (known) return this.#repeat(known, order, deed);
    if (!deed.plan.allowed) throw new RuntimeFault('ACTION_REFUSED', deed.plan.effect);
    const { action, reason, operator, idempotencyKey } = order;
    const id = uuidv7<'action'>();
    const row = await beginAction(db, { id, action, reason, operator, idempotencyKey, target: deed.target, before: deed.before });
    if (row.id !== id) return this.#repeat(row, order, deed);
    log.warn('operator action', { action, target: deed.target, operator });
    return { ...toActionView(await this.carryOut(row, deed)), repeated: false };
  }

  async #repeat(row: ActionRow, order: ActionOrder, deed: Deed): Promise<ActionResult> {
    if (row.action !== order.action || row.target !== deed.target) throw keyReused();
    const done = row.state === 'DONE' ? row : await this.carryOut(row, deed);
    return { ...toActionView(done), repeated: true };
  }

  /** Does what the row says was begun, and closes it. */
  async carryOut(row: ActionRow, deed: Deed): Promise<ActionRow> {
    await deed.do(row, row.state_before);
    return finishAction(this.#deps.db, row.id, await deed.after());
  }
}

export function keyReused(): RuntimeFault {
  return new RuntimeFault('KEY_REUSED', 'This idempotency key was used for another action. Take a new one.');
}
