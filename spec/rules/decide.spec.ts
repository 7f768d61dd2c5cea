/**
 * What a ConversationActor decides and learns, as pure functions, against a model that keeps every turn of a conversation and its fate.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { evolve, type Fact, isClaimable, leasedBy, mayStartAtOnce, turnPhase, uncalledLease } from '../../actors/conversation/decide.ts';
import type { ConversationRows } from '../../db/ledger/conversation.ts';
import type { AccountId, ConversationId, RunId, SandboxId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';

const SANDBOX = 'sandbox-1' as SandboxId;

/** Every turn ever asked, oldest first. */
interface ModelTurn {
  readonly n: number;
  status: 'QUEUED' | 'RUNNING' | 'STOPPING' | 'CLOSED';
  attempt: number;
  epoch: number;
}

class Model {
  readonly turns: ModelTurn[] = [];
  version = 0;

  get leased(): ModelTurn | undefined {
    return this.turns.find((turn) => turn.status === 'RUNNING' || turn.status === 'STOPPING');
  }

  get queued(): readonly ModelTurn[] {
    return this.turns.filter((turn) => turn.status === 'QUEUED');
  }

  /** What one read of the rows would return. */
  rows(): ConversationRows {
    const { leased } = this;
    return {
      id: 'conversation' as ConversationId,
      workspaceId: 'workspace' as WorkspaceId,
      accountId: 'account' as AccountId,
      version: this.version,
      leased: leased
        ? {
            ...ids(leased),
            status: leased.status === 'RUNNING' ? 'RUNNING' : 'STOPPED',
            epoch: leased.epoch,
            sandboxId: SANDBOX,
            called: false,
          }
        : null,
      queued: this.queued.map((turn) => ({ turnId: ids(turn).turnId, requestId: `request-${turn.n}`, attempt: turn.attempt })),
    };
  }
}

function ids(turn: { readonly n: number }): { turnId: TurnId; runId: RunId } {
  return { turnId: `turn-${turn.n}` as TurnId, runId: `run-${turn.n}` as RunId };
}

/** One change of the conversation: null when the rules do not allow it now. `known`: the fact alone tells what the rows are. */
type Step = (model: Model) => { fact: Fact; known: boolean } | null;

const submit =
  (claims: boolean): Step =>
  (model) => {
    const claimed = claims && !model.leased && model.queued.length === 0;
    const turn: ModelTurn = {
      n: model.turns.length + 1,
      status: claimed ? 'RUNNING' : 'QUEUED',
      attempt: claimed ? 1 : 0,
      epoch: claimed ? 1 : 0,
    };
    model.turns.push(turn);
    const fact = { type: 'submitted', version: ++model.version, ...ids(turn), requestId: `request-${turn.n}` } as const;
    return { fact: { ...fact, claimedBy: claimed ? SANDBOX : null }, known: true };
  };

const claim: Step = (model) => {
  const [turn] = model.queued;
  if (model.leased || !turn) return null;
  Object.assign(turn, { status: 'RUNNING', attempt: turn.attempt + 1, epoch: turn.epoch + 1 });
  return { fact: { type: 'claimed', version: ++model.version, ...ids(turn), epoch: turn.epoch, sandboxId: SANDBOX }, known: true };
};

const stop =
  (pick: number): Step =>
  (model) => {
    const open = model.turns.filter((turn) => turn.status === 'QUEUED' || turn.status === 'RUNNING');
    const turn = open[pick % Math.max(1, open.length)];
    if (!turn) return null;
    const leased = turn.status === 'RUNNING';
    turn.status = leased ? 'STOPPING' : 'CLOSED';
    return { fact: { type: 'stopped', version: ++model.version, turnId: ids(turn).turnId, leased }, known: true };
  };

const end: Step = (model) => {
  const { leased } = model;
  if (!leased) return null;
  leased.status = 'CLOSED';
  return { fact: { type: 'ended', version: ++model.version }, known: true };
};

const handOn: Step = (model) => {
  const { leased } = model;
  if (!leased) return null;
  const stopped = leased.status === 'STOPPING';
  leased.status = stopped ? 'CLOSED' : 'QUEUED';
  if (!stopped) leased.attempt -= 1;
  return { fact: { type: 'handed-on', version: ++model.version, status: stopped ? 'STOPPED' : 'QUEUED' }, known: stopped };
};

const steps = fc.array(fc.oneof(fc.boolean().map(submit), fc.constant(claim), fc.nat(9).map(stop), fc.constant(end), fc.constant(handOn)), {
  maxLength: 40,
});

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) freeze(inner);
    Object.freeze(value);
  }
  return value;
}

/** Plays a history and shows `look` the model and the rows that the facts led to after each step. */
function play(history: readonly Step[], look: (model: Model, rows: ConversationRows) => void): void {
  const model = new Model();
  let rows = freeze(model.rows());
  for (const step of history) {
    const happened = step(model);
    if (!happened) continue;
    const learned = evolve(rows, happened.fact);
    if (happened.known) expect(learned, happened.fact.type).to.deep.equal(model.rows());
    else expect(learned, 'the rows are read again').to.equal(null);
    rows = freeze(learned ?? model.rows());
    look(model, rows);
  }
}

describe('the decisions of a conversation', () => {
  it('what it learns from its own writes is what the rows say, after any history', () => {
    fc.assert(fc.property(steps, (history) => play(history, () => undefined)));
  });

  it('it reads its rows again when a fact does not follow the version that it knows', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: -3, max: 3 }), (history, skew) => {
        fc.pre(skew !== 1);
        play(history, (model, rows) => {
          const step = submit(false)(model);
          if (step) expect(evolve(rows, { ...step.fact, version: rows.version + skew })).to.equal(null);
          model.turns.pop();
          model.version -= 1;
        });
      }),
    );
  });

  it('a turn may start when something waits and nothing is leased, a stopped loop included', () => {
    fc.assert(
      fc.property(steps, (history) =>
        play(history, (model, rows) => {
          expect(isClaimable(rows)).to.equal(!model.leased && model.queued.length > 0);
          expect(mayStartAtOnce(rows)).to.equal(!model.leased && model.queued.length === 0);
          expect(isClaimable(rows) && mayStartAtOnce(rows)).to.equal(false);
        }),
      ),
    );
  });

  it('it knows of each turn whether it waits, runs, is being stopped, or is none of its open ones', () => {
    const phases = { QUEUED: 'queued', RUNNING: 'running', STOPPING: 'stopping', CLOSED: 'closed' } as const;
    fc.assert(
      fc.property(steps, (history) =>
        play(history, (model, rows) => {
          for (const turn of model.turns) expect(turnPhase(rows, ids(turn).turnId)).to.equal(phases[turn.status]);
          expect(turnPhase(rows, 'turn-0' as TurnId)).to.equal('closed');
        }),
      ),
    );
  });

  it('an attempt is the leased one only with its run, its epoch and its sandbox', () => {
    // rule: R5
    fc.assert(
      fc.property(steps, (history) =>
        play(history, ({ leased }, rows) => {
          const { id: conversationId, workspaceId } = rows;
          const mine = {
            sandbox: { sandboxId: SANDBOX, workspaceId, conversationId },
            runId: ids(leased ?? { n: 0 }).runId,
            epoch: leased?.epoch ?? 1,
          };
          expect(leasedBy(rows, mine)?.runId).to.equal(leased && mine.runId);
          expect(uncalledLease(rows)?.runId).to.equal(leased && mine.runId);
          for (const other of [
            { ...mine, epoch: mine.epoch + 1 },
            { ...mine, runId: 'run-x' as RunId },
            { ...mine, sandbox: { ...mine.sandbox, sandboxId: 'sandbox-2' as SandboxId } },
          ]) {
            expect(leasedBy(rows, other)).to.equal(null);
          }
        }),
      ),
    );
  });
});
