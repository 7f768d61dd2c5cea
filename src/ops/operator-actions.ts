/**
 * Owns: what operators do: the preview, the row in the log, the deed, what is so afterwards.
 * The row is written first (its `state_before` names run and epoch) and closed last. A cut between leaves it BEGUN; a repeat with its key does
 * the deed again, which the fence of its statement makes harmless, and closes it.
 */
import type { Member, StopReply } from '../../actors/index.ts';
import type { EndedTurn } from '../../db/ledger/refuse.ts';
import { findWorkspace } from '../../db/models/catalogue.ts';
import { type ActionRow, beginAction, findAction, finishAction } from '../../db/ops/actions.ts';
import { endSandboxOfRun } from '../../db/ops/end-run-sandbox.ts';
import { pauseClaims, readPauseScope, resumeClaims } from '../../db/ops/pauses.ts';
import { skipTurn } from '../../db/ops/skip-turn.ts';
import { readTurnFacts, type TurnFacts } from '../../db/ops/turn-facts.ts';
import type { Executor } from '../../db/pool.ts';
import type { ActionPreview, ActionResult, OperatorActionName } from '../contract/operators.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { type AccountId, isUuid, type TurnId, uuidv7, type WorkspaceId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { type Note, noteOf, type Plan, planDrain, planPause, planTurnAction, type TurnAction } from './action-plan.ts';
import { toActionView } from './operator-view.ts';

/** What the rest of the server does for an operator. */
export interface OperatorHands {
  stopTurn(member: Member, turnId: TurnId): Promise<StopReply>;
  /** Takes back what a dead sandbox holds. */
  reap(): Promise<number>;
  /** A turn was ended without an attempt: everybody who shows it is told. */
  turnEnded(turn: EndedTurn): void;
  /** Begins the drain of this server; returns at once. */
  drain(): void;
  draining(): boolean;
}

export interface OperatorActionsDeps {
  readonly db: Executor;
  readonly log: Log;
  readonly hands: OperatorHands;
  /** This server. */
  readonly hostId: string;
  /** What the person of a skipped turn is told. */
  readonly skipped: { readonly code: string; readonly text: string };
}

/** `target`: a turn's id; a workspace's slug, or null for the installation; nothing for a drain. */
export interface ActionAsk {
  readonly action: OperatorActionName;
  readonly target: string | null;
}

export interface ActionOrder extends ActionAsk {
  readonly reason: string;
  readonly idempotencyKey: string;
  /** `local`, or an account. */
  readonly operator: string;
}

interface Deed {
  readonly target: string;
  readonly plan: Plan;
  readonly before: Note;
  /** `before` is that of the log's row, which a repeat may bring. */
  do(order: ActionOrder, before: Note): Promise<void>;
  after(): Promise<Note>;
}

/** Another writer may hold the conversation for a moment. */
const TRIES_MAX = 5;

export class OperatorActions {
  readonly #deps: OperatorActionsDeps;

  constructor(deps: OperatorActionsDeps) {
    this.#deps = deps;
  }

  async preview(ask: ActionAsk): Promise<ActionPreview> {
    const { target, plan, before } = await this.#deed(ask);
    return { action: ask.action, target, ...plan, before };
  }

  /** Throws ACTION_REFUSED when it does not fit what is there, KEY_REUSED when the key was for something else. */
  async run(order: ActionOrder): Promise<ActionResult> {
    const { db, log } = this.#deps;
    const deed = await this.#deed(order);
    const known = await findAction(db, order.idempotencyKey);
    if (known) return this.#repeat(known, order, deed);
    if (!deed.plan.allowed) throw new RuntimeFault('ACTION_REFUSED', deed.plan.effect);
    const { action, reason, operator, idempotencyKey } = order;
    const id = uuidv7<'action'>();
    const row = await beginAction(db, { id, action, reason, operator, idempotencyKey, target: deed.target, before: deed.before });
    if (row.id !== id) return this.#repeat(row, order, deed);
    log.warn('operator action', { action, target: deed.target, operator });
    return { ...toActionView(await this.#carryOut(row, order, deed)), repeated: false };
  }

  async #repeat(row: ActionRow, order: ActionOrder, deed: Deed): Promise<ActionResult> {
    if (row.action !== order.action || row.target !== deed.target)
      throw new RuntimeFault('KEY_REUSED', 'This idempotency key was used for another action. Take a new one.');
    const done = row.state === 'DONE' ? row : await this.#carryOut(row, order, deed);
    return { ...toActionView(done), repeated: true };
  }

  async #carryOut(row: ActionRow, order: ActionOrder, deed: Deed): Promise<ActionRow> {
    await deed.do(order, row.state_before);
    return finishAction(this.#deps.db, row.id, await deed.after());
  }

  #deed({ action, target }: ActionAsk): Promise<Deed> {
    switch (action) {
      case 'stop':
      case 'requeue':
      case 'skip':
        return this.#turnDeed(action, target ?? '');
      case 'pause-claims':
      case 'resume-claims':
        return this.#pauseDeed(action, target);
      case 'drain':
        return Promise.resolve(this.#drainDeed());
    }
  }

  async #facts(id: string): Promise<TurnFacts> {
    const [facts] = isUuid(id) ? await readTurnFacts(this.#deps.db, { list: 'one', id }) : [];
    if (facts) return facts;
    throw new RuntimeFault('TURN_NOT_FOUND', 'There is no such turn. heph turns lists them.');
  }

  async #turnDeed(action: TurnAction, id: string): Promise<Deed> {
    const facts = await this.#facts(id);
    const plan = planTurnAction(action, facts);
    const after = async () => noteOf(await this.#facts(id));
    const epoch = (before: Note) => Number(before['epoch']);
    const steps: Readonly<Record<TurnAction, (before: Note) => Promise<void>>> = {
      stop: async () => {
        const { workspace_id, account_id } = facts;
        await this.#deps.hands.stopTurn({ workspaceId: workspace_id as WorkspaceId, accountId: account_id as AccountId }, id as TurnId);
      },
      requeue: async (before) => {
        await endSandboxOfRun(this.#deps.db, facts.run_id, epoch(before));
        await this.#deps.hands.reap();
      },
      skip: (before) => this.#skip(id, epoch(before)),
    };
    return { target: id, plan, before: noteOf(facts), do: (_order, before) => steps[action](before), after };
  }

  async #skip(turnId: string, epoch: number): Promise<void> {
    const { db, hands, skipped } = this.#deps;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const ended = await skipTurn(db, { turnId, epoch }, skipped);
      if (ended) return hands.turnEnded(ended);
      const { status, epoch: now } = await this.#facts(turnId);
      if (status !== 'QUEUED' || now !== epoch) return; // somebody else was faster
    }
    throw new RuntimeFault('BUSY', 'This conversation is being written. Try again with the same key.', { retry: 'same' });
  }

  async #pauseDeed(action: 'pause-claims' | 'resume-claims', slug: string | null): Promise<Deed> {
    const { db } = this.#deps;
    const workspaceId = slug === null ? null : await findWorkspace(db, slug);
    if (slug !== null && workspaceId === null) throw new RuntimeFault('WORKSPACE_NOT_FOUND', `There is no workspace "${slug}".`);
    const target = slug ?? 'installation';
    const scope = await readPauseScope(db, workspaceId);
    return {
      ...{ target, plan: planPause(action, target, scope), before: { ...scope } },
      do: ({ operator, reason }) =>
        action === 'pause-claims' ? pauseClaims(db, workspaceId, { operator, reason }) : resumeClaims(db, workspaceId),
      after: async () => ({ ...(await readPauseScope(db, workspaceId)) }),
    };
  }

  #drainDeed(): Deed {
    const { hands, hostId } = this.#deps;
    const note = () => ({ draining: hands.draining() });
    return {
      ...{ target: hostId, plan: planDrain(hands.draining()), before: note() },
      do: async () => hands.drain(),
      after: async () => note(),
    };
  }
}
