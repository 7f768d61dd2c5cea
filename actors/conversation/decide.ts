/**
 * Owns: what a ConversationActor does with a command, as pure functions of its rows: (rows, command) -> decision, and what its rows are
 * after a write: (rows, fact) -> rows. I/O is around it (conversation.actor.ts).
 * It is a cache: each write compares the version that the decision was made on, and the database's constraints decide.
 */
import type { ConversationRows, LeasedTurn } from '../../db/ledger/conversation.ts';
import type { RunId, SandboxId, TurnId } from '../../src/kernel/ids.ts';
import type { Attempt } from '../runtime.ts';

/** A turn of this conversation may start: something is queued and no run is leased. The same rule as the view claimable_turn. */
export function isClaimable(rows: ConversationRows): boolean {
  return rows.leased === null && rows.queued.length > 0;
}

/** A question may start at once, when a sandbox waits and a slot is free: nothing runs and nothing is before it. */
export function mayStartAtOnce(rows: ConversationRows): boolean {
  return rows.leased === null && rows.queued.length === 0;
}

/** A claim of this conversation may be outstanding: granted, and its sandbox has made no call since. */
export function uncalledLease(rows: ConversationRows): LeasedTurn | null {
  return rows.leased?.called === false ? rows.leased : null;
}

/** The turn as the cache knows it. */
export function turnPhase(rows: ConversationRows, turnId: TurnId): 'queued' | 'running' | 'stopping' | 'closed' {
  if (rows.queued.some((turn) => turn.turnId === turnId)) return 'queued';
  if (rows.leased?.turnId !== turnId) return 'closed';
  return rows.leased.status === 'RUNNING' ? 'running' : 'stopping';
}

/** The leased turn, if it is this attempt's. rule: R5 (the statement checks again) */
export function leasedBy(rows: ConversationRows, attempt: Attempt): LeasedTurn | null {
  const leased = rows.leased;
  const same = leased?.runId === attempt.runId && leased.epoch === attempt.epoch && leased.sandboxId === attempt.sandbox.sandboxId;
  return same ? leased : null;
}

/** A fact that a statement has just written, with the version after it. */
export type Fact =
  | {
      readonly type: 'submitted';
      readonly version: number;
      readonly turnId: TurnId;
      readonly requestId: string;
      readonly runId: RunId;
      readonly claimedBy: SandboxId | null;
    }
  | {
      readonly type: 'claimed';
      readonly version: number;
      readonly turnId: TurnId;
      readonly runId: RunId;
      readonly epoch: number;
      readonly sandboxId: SandboxId;
    }
  | { readonly type: 'stopped'; readonly version: number; readonly turnId: TurnId; readonly leased: boolean }
  | { readonly type: 'ended'; readonly version: number }
  | { readonly type: 'handed-on'; readonly version: number; readonly status: 'QUEUED' | 'STOPPED' };

/** The rows after a fact, or null when the cache cannot know them (then they are loaded again). */
export function evolve(rows: ConversationRows, fact: Fact): ConversationRows | null {
  if (fact.version !== rows.version + 1) return null;
  const next = { ...rows, version: fact.version };
  switch (fact.type) {
    case 'submitted': {
      if (fact.claimedBy === null) {
        return { ...next, queued: [...rows.queued, { turnId: fact.turnId, requestId: fact.requestId, attempt: 0 }] };
      }
      const leased = {
        turnId: fact.turnId,
        status: 'RUNNING',
        runId: fact.runId,
        epoch: 1,
        sandboxId: fact.claimedBy,
        called: false,
      } as const;
      return { ...next, leased };
    }
    case 'claimed': {
      const { turnId, runId, epoch, sandboxId } = fact;
      const queued = rows.queued.filter((turn) => turn.turnId !== turnId);
      return { ...next, queued, leased: { turnId, status: 'RUNNING', runId, epoch, sandboxId, called: false } };
    }
    case 'stopped':
      if (!fact.leased) return { ...next, queued: rows.queued.filter((turn) => turn.turnId !== fact.turnId) };
      return rows.leased ? { ...next, leased: { ...rows.leased, status: 'STOPPED' } } : null;
    case 'ended':
      return { ...next, leased: null };
    case 'handed-on':
      return fact.status === 'STOPPED' ? { ...next, leased: null } : null;
  }
}
