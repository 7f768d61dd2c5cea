/**
 * Owns: everything that operators read and do, as one door for the routes of the operations listener.
 */
import { listOperators } from '../../db/ops/operators.ts';
import type { OperatorAccountView } from '../contract/operator-batch.ts';
import { OperatorActions, type OperatorActionsDeps } from './operator-actions.ts';
import { OperatorBatch } from './operator-batch.ts';
import { type InMemory, OperatorPages } from './operator-pages.ts';
import { OperatorView } from './operator-view.ts';
import { Reveal } from './reveal.ts';

export interface OperatorDeskDeps extends OperatorActionsDeps {
  readonly memory: InMemory;
}

export class OperatorDesk {
  readonly view: OperatorView;
  readonly pages: OperatorPages;
  readonly actions: OperatorActions;
  readonly batch: OperatorBatch;
  readonly entries: Reveal;
  readonly #deps: OperatorDeskDeps;

  constructor(deps: OperatorDeskDeps) {
    const { db, log, hostId, memory } = deps;
    this.#deps = deps;
    this.view = new OperatorView(db, hostId);
    this.pages = new OperatorPages(db, memory);
    this.actions = new OperatorActions(deps);
    this.batch = new OperatorBatch({ db, log, view: this.view, actions: this.actions });
    this.entries = new Reveal({ db, log });
  }

  async operators(): Promise<readonly OperatorAccountView[]> {
    const rows = await listOperators(this.#deps.db);
    return rows.map(({ granted_by: by, ...row }) => ({ ...row, by }));
  }
}
