/**
 * Owns: each deed of an operator: what it is about, whether it fits what is there, how it is done, what is so afterwards.
 * Does not own: the log around it (operator-actions.ts), the plans (action-plan.ts).
 */
import type { Member, StopReply } from '../../actors/index.ts';
import type { EndedTurn } from '../../db/ledger/refuse.ts';
import { findWorkspace } from '../../db/models/catalogue.ts';
import { endSandboxOfRun } from '../../db/ops/end-run-sandbox.ts';
import { givenRole, giveRole } from '../../db/ops/operators.ts';
import { findOutboxAction } from '../../db/ops/outbox.ts';
import { pauseClaims, readPauseScope, resumeClaims } from '../../db/ops/pauses.ts';
import { skipTurn } from '../../db/ops/skip-turn.ts';
import { readTurnFacts, type TurnFacts } from '../../db/ops/turn-facts.ts';
import { findAccountByEmail } from '../../db/people/members.ts';
import type { Executor } from '../../db/pool.ts';
import { decideAction } from '../../db/slack/outbox-admin.ts';
import type { OperatorActionName, OpsRole, TurnAction } from '../contract/operators.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { type AccountId, isUuid, type TurnId, type WorkspaceId } from '../kernel/ids.ts';
import { type Note, noteOf, type Plan, planDrain, planOutbox, planPause, planRole, planTurnAction, surfaceOf } from './action-plan.ts';

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

export interface DeedDeps {
  readonly db: Executor;
  readonly hands: OperatorHands;
  /** This server. */
  readonly hostId: string;
  /** What the person of a skipped turn is told. */
  readonly skipped: { readonly code: string; readonly text: string };
}

/** `target`: a turn's id; a workspace's slug, `surface:…`, or null for the installation; an outbox action; an account; nothing for a drain. */
export interface ActionAsk {
  readonly action: OperatorActionName;
  readonly target: string | null;
  /** Of `set-operator`; null: the role is taken back. */
  readonly role?: OpsRole | null;
}

/** Why, and by whom. */
export interface Because {
  readonly reason: string;
  readonly operator: string;
}

export interface Deed {
  readonly target: string;
  readonly plan: Plan;
  readonly before: Note;
  /** `before` is that of the log's row, which a repeat may bring. */
  do(because: Because, before: Note): Promise<void>;
  after(): Promise<Note>;
}

/** Another writer may hold the conversation for a moment. */
const TRIES_MAX = 5;
const NO_TURN = 'There is no such turn. heph turns lists them.';
const NO_OUTBOX_ACTION = 'There is no such action. heph outbox list shows their ids.';

export class Deeds {
  readonly #deps: DeedDeps;

  constructor(deps: DeedDeps) {
    this.#deps = deps;
  }

  /** Throws TURN_NOT_FOUND, WORKSPACE_NOT_FOUND or NOT_FOUND when there is no such target. */
  async of({ action, target, role = null }: ActionAsk): Promise<Deed> {
    switch (action) {
      case 'stop':
      case 'requeue':
      case 'skip':
      case 'release':
        return this.ofTurn(action, await this.facts(target ?? ''));
      case 'pause-claims':
      case 'resume-claims':
        return this.#pause(action, target);
      case 'drain':
        return this.#drain();
      case 'outbox-sent':
      case 'outbox-again':
        return this.#outbox(action === 'outbox-sent' ? 'sent' : 'again', target ?? '');
      case 'set-operator':
        return this.#role(target ?? '', role);
      case 'reveal-entry':
        throw new RuntimeFault('INTERNAL', 'An entry is revealed by its own statement.');
    }
  }

  /** Throws TURN_NOT_FOUND. */
  async facts(id: string): Promise<TurnFacts> {
    const [facts] = isUuid(id) ? await readTurnFacts(this.#deps.db, { list: 'one', id }) : [];
    if (facts) return facts;
    throw new RuntimeFault('TURN_NOT_FOUND', NO_TURN);
  }

  ofTurn(action: TurnAction, facts: TurnFacts): Deed {
    const { db, hands } = this.#deps;
    const { id, run_id: runId, workspace_id: workspaceId, account_id: accountId } = facts;
    const takeBack = async (before: Note) => {
      await endSandboxOfRun(db, runId, Number(before['epoch']));
      await hands.reap();
    };
    const steps: Readonly<Record<TurnAction, (before: Note) => Promise<void>>> = {
      stop: async () => {
        await hands.stopTurn({ workspaceId: workspaceId as WorkspaceId, accountId: accountId as AccountId }, id as TurnId);
      },
      requeue: takeBack,
      release: takeBack,
      skip: (before) => this.#skip(id, Number(before['epoch'])),
    };
    return {
      ...{ target: id, plan: planTurnAction(action, facts), before: noteOf(facts) },
      do: (_because, before) => steps[action](before),
      after: async () => noteOf(await this.facts(id)),
    };
  }

  async #skip(turnId: string, epoch: number): Promise<void> {
    const { db, hands, skipped } = this.#deps;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const ended = await skipTurn(db, { turnId, epoch }, skipped);
      if (ended) return hands.turnEnded(ended);
      const { status, epoch: now } = await this.facts(turnId);
      if (status !== 'QUEUED' || now !== epoch) return; // somebody else was faster
    }
    throw new RuntimeFault('BUSY', 'This conversation is being written. Try again with the same key.', { retry: 'same' });
  }

  async #pause(action: 'pause-claims' | 'resume-claims', target: string | null): Promise<Deed> {
    const { db } = this.#deps;
    const surface = target === null ? null : surfaceOf(target);
    const slug = surface === null ? target : null;
    const workspaceId = slug === null ? null : await findWorkspace(db, slug);
    if (slug !== null && workspaceId === null) throw new RuntimeFault('WORKSPACE_NOT_FOUND', `There is no workspace "${slug}".`);
    const [at, where] = [{ workspaceId, surface }, target ?? 'installation'];
    const scope = await readPauseScope(db, at);
    return {
      ...{ target: where, plan: planPause(action, where, scope), before: { ...scope } },
      do: ({ operator, reason }) => (action === 'pause-claims' ? pauseClaims(db, at, { operator, reason }) : resumeClaims(db, at)),
      after: async () => ({ ...(await readPauseScope(db, at)) }),
    };
  }

  #drain(): Deed {
    const { hands, hostId } = this.#deps;
    const note = () => ({ draining: hands.draining() });
    return {
      ...{ target: hostId, plan: planDrain(hands.draining()), before: note() },
      do: async () => hands.drain(),
      after: async () => note(),
    };
  }

  /** The statement moves an action only from a state in which that is right, so a repeat does nothing. */
  async #outbox(decision: 'sent' | 'again', id: string): Promise<Deed> {
    const { db } = this.#deps;
    const find = async () => {
      const found = isUuid(id) ? await findOutboxAction(db, id) : null;
      if (!found) throw new RuntimeFault('NOT_FOUND', NO_OUTBOX_ACTION);
      return found;
    };
    const note = ({ state, attempts, reason }: Awaited<ReturnType<typeof find>>) => ({ state, attempts, reason });
    const found = await find();
    return {
      ...{ target: id, plan: planOutbox(decision, found.state, found.channel), before: note(found) },
      async do(_because, before) {
        // As it was seen: what was sent since, by an earlier try of this same order, must not be sent again.
        const now = await find();
        if (now.state === before['state'] && now.attempts === before['attempts']) await decideAction(db, id, decision);
      },
      after: async () => note(await find()),
    };
  }

  async #role(member: string, role: OpsRole | null): Promise<Deed> {
    const { db } = this.#deps;
    const accountId = isUuid(member) ? (member as AccountId) : await findAccountByEmail(db, emailOf(member));
    if (!accountId)
      throw new RuntimeFault('NOT_FOUND', `Nobody is known as "${member}". Add them first: heph member add ${member} --workspace SLUG.`);
    const note = async () => ({ role: await givenRole(db, accountId) });
    const before = await note();
    return {
      ...{ target: `${accountId} ${role ?? 'none'}`, plan: planRole(before.role, role), before },
      do: ({ operator: by }) => giveRole(db, accountId, { role, by }),
      after: note,
    };
  }
}

/** Folded like those of sign-ins (src/people/email.ts): only the letters A to Z. */
function emailOf(text: string): string {
  return text.trim().replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
