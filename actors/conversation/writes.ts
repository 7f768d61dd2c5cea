/**
 * Owns: the writes of a ConversationActor: decide on the cached rows, write at their version, learn the new rows, tell the others.
 * A change is published after the statement has committed, never inside it.
 */

import { violates } from '../../db/faults.ts';
import { type ConversationRows, findTurn } from '../../db/ledger/conversation.ts';
import { endTurn as endTurnStatement } from '../../db/ledger/end-turn.ts';
import type { ClaimTimes } from '../../db/ledger/fence.ts';
import { handOnRun } from '../../db/ledger/hand-on.ts';
import { stopTurn as stopTurnStatement } from '../../db/ledger/stop.ts';
import { submitQuestion as submitStatement } from '../../db/ledger/submit.ts';
import { FAILURE_DETAILS, type RunEndRequest, type TurnEndRequest } from '../../src/contract/agent.ts';
import type { Change } from '../../src/contract/changes.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { type EntryId, type RunId, type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { TRANSIENT } from '../../src/kernel/transient.ts';
import type { TurnFailure } from '../failure-texts.ts';
import type { Attempt, QuestionInput, StopReply, SubmitReply } from '../runtime.ts';
import type { EndRunReply, EndTurnReply } from './commands.ts';
import { evolve, leasedBy, mayStartAtOnce, turnPhase } from './decide.ts';
import type { ConversationDeps } from './deps.ts';
import { deriveEntries, hasAnswer } from './pi-entries.ts';
import { openPull, type ParkedPull, toRun } from './pulls.ts';
import type { ConversationState } from './state.ts';

/** What one command works with: the actor's state and a way to read its rows again. */
export interface Session {
  readonly deps: ConversationDeps;
  readonly state: ConversationState;
  reload(): Promise<ConversationRows>;
}

/** Another server may write between our read and our write. */
const STALE_TRIES_MAX = TRANSIENT.versionRace.triesMax;

async function atVersion<T>(session: Session, write: (rows: ConversationRows) => Promise<T | null>): Promise<T> {
  for (let tries = 0; tries < STALE_TRIES_MAX; tries++) {
    const rows = session.state.rows ?? (await session.reload());
    const written = await write(rows);
    if (written !== null) return written;
    session.state.rows = null;
  }
  throw new RuntimeFault('BUSY', 'This conversation is being written from several places. Try again in a moment.', { retry: 'later' });
}

function publish(session: Session, rows: ConversationRows, change: Partial<Change> & { version: number }): void {
  session.deps.changes.publish({
    workspaceId: rows.workspaceId,
    conversationId: rows.id,
    accountId: rows.accountId,
    turnIds: [],
    entryIds: [],
    sealedRunIds: [],
    ...change,
  });
}

export function submitQuestion(session: Session, input: QuestionInput): Promise<SubmitReply> {
  const { deps, state } = session;
  const ids = { turnId: uuidv7<'turn'>(), entryId: uuidv7<'entry'>(), runId: uuidv7<'run'>() };
  return atVersion<SubmitReply>(session, async (rows) => {
    if (rows.accountId !== input.accountId || rows.workspaceId !== input.workspaceId) return { kind: 'no-conversation' };
    const pull = mayStartAtOnce(rows) ? openPull(state.parked) : null;
    const sandboxId = pull?.sandbox.sandboxId ?? null;
    const { requestId, surface, text, page, slack = null, workspaceId, accountId } = input;
    const params = { workspaceId, accountId, requestId, surface, text, page, slack, conversationId: rows.id, version: rows.version };
    const result = await submitStatement(deps.db, { ...params, ...ids, sandboxId, maxFollowUps: deps.maxFollowUps, times: deps.times });
    switch (result.kind) {
      case 'stale':
        return null;
      case 'erased':
        return { kind: 'person-erased' };
      case 'full':
      case 'disconnected':
        return { kind: result.kind };
      case 'repeat':
        if (!result.sameText) return { kind: 'request-id-reused' };
        return { kind: 'accepted', turnId: result.turnId, entryId: result.entryId, written: null };
      case 'written': {
        const claimedBy = result.claimed ? sandboxId : null;
        const { version, entry, turn } = result;
        state.rows = evolve(rows, { type: 'submitted', version, turnId: ids.turnId, requestId, runId: ids.runId, claimedBy });
        publish(session, rows, { version, turnIds: [ids.turnId], entryIds: [ids.entryId], slots: result.claimed !== null });
        if (pull && result.claimed) await deliver(session, pull, { runId: ids.runId, ...result.claimed });
        return { kind: 'accepted', turnId: ids.turnId, entryId: ids.entryId, written: { entry, turn } };
      }
    }
  });
}

/** The claim of a submit goes to the pull that it was made for, unless that was closed meanwhile. */
async function deliver(session: Session, pull: ParkedPull, claim: ClaimTimes & { readonly runId: RunId }): Promise<void> {
  const { deps } = session;
  const { runId } = claim;
  if (pull.answer(toRun({ runId, epoch: 1 }, claim)) || deps.claiming()) return; // else its sandbox pulls again and gets it
  await handBack(session, { sandbox: pull.sandbox, runId, epoch: 1 });
}

/** A claim that reached nobody while this server stops: its sandbox will not pull again, so the attempt is given back. */
export async function handBack(session: Session, attempt: Attempt): Promise<void> {
  await endRun(session, attempt, { outcome: 'HANDED_ON' });
}

/** What a stop answers for a turn that the cache does not hold as open. null: it is open, so the cache is behind. */
function closedReply(turn: { readonly status: string } | null): StopReply | null {
  if (!turn) return { kind: 'no-turn' };
  if (turn.status === 'STOPPED') return { kind: 'stopped' };
  return turn.status === 'DONE' || turn.status === 'FAILED' ? { kind: 'already-ended' } : null;
}

export function stopTurn(session: Session, turnId: TurnId): Promise<StopReply> {
  const { deps, state } = session;
  return atVersion<StopReply>(session, async (rows) => {
    const phase = turnPhase(rows, turnId);
    if (phase === 'stopping') return { kind: 'stopped' };
    if (phase === 'closed') return closedReply(await findTurn(deps.db, rows, turnId));
    const done = await stopTurnStatement(deps.db, { conversationId: rows.id, version: rows.version, turnId, graceMs: deps.times.graceMs });
    if (!done) return null;
    state.rows = evolve(rows, { type: 'stopped', version: done.version, turnId, leased: done.leased });
    // One that runs ends with its loop, or is taken back.
    if (!done.leased) {
      const names = { conversationId: rows.id, turnId, runId: done.runId };
      deps.turns.turnEnded({ ...names, ...done.timing, outcome: 'STOPPED', firstOutputMs: null });
    }
    // A queued turn that is stopped moves those behind it up.
    publish(session, rows, { version: done.version, turnIds: [turnId], sealedRunIds: done.leased ? [done.runId] : [], slots: true });
    return { kind: 'stopped' };
  });
}

/** How an end settles a turn that was not stopped. rule: R7 (a failed end stores only its summary) */
function settle(
  deps: ConversationDeps,
  end: TurnEndRequest,
  answered: boolean,
): { status: 'DONE' | 'FAILED'; failure: TurnFailure | null; detail: string | null } {
  if (end.outcome === 'DONE' && answered) return { status: 'DONE', failure: null, detail: null };
  const failure = end.reason === 'STALLED' ? deps.texts.stalled : end.reason === 'DEADLINE' ? deps.texts.deadline : deps.texts.error;
  const named = end.outcome === 'FAILED' ? end.detail : 'empty_answer';
  const known = named === undefined || (FAILURE_DETAILS as readonly string[]).includes(named);
  return { status: 'FAILED', failure, detail: known ? (named ?? null) : 'unrecognized' };
}

/**
 * The one path that turns an attempt's end into rows; a repeated end finds no leased run and changes nothing.
 * Entries are checked before the turn is touched.
 */
export async function endTurn(session: Session, attempt: Attempt, end: TurnEndRequest): Promise<EndTurnReply> {
  const { deps, state } = session;
  return atVersion<EndTurnReply>(session, async (rows) => {
    const leased = leasedBy(rows, attempt);
    if (!leased) {
      // The cache may be behind: a claim that was folded into another server's submit.
      return state.rows === rows && (await isBehind(session, rows)) ? null : { kind: 'lost' };
    }
    const stopped = leased.status === 'STOPPED';
    const all = deriveEntries(end.entries, false);
    if (all.kind === 'refused') return all;
    const { status, failure, detail } = settle(deps, end, hasAnswer(all.entries));
    const kept = !stopped && status === 'FAILED' ? deriveEntries(end.entries, true) : all;
    if (kept.kind === 'refused') return kept;
    const error = failure && { code: failure.code, text: failure.text, detail };
    const key = { runId: attempt.runId, epoch: attempt.epoch, sandboxId: attempt.sandbox.sandboxId };
    const params = { ...key, conversationId: rows.id, version: rows.version, status, error, entries: kept.entries };
    const done = await endTurnStatement(deps.db, params).catch((thrown: unknown) => {
      if (violates(thrown, 'mentor_entry_pkey')) return 'taken' as const;
      throw thrown;
    });
    if (done === 'taken') return { kind: 'refused', why: 'an entry id is taken' };
    if (!done) return null;
    state.rows = evolve(rows, { type: 'ended', version: done.version });
    ended(session, rows, { ...done, runId: attempt.runId, epoch: attempt.epoch });
    const names = { conversationId: rows.id, turnId: done.turnId, runId: attempt.runId };
    const firstMs = firstOutputMs(session, attempt, done.timing.durationMs);
    deps.turns.attemptEnded({ ...names, epoch: attempt.epoch, how: done.status, ageMs: done.timing.attemptMs });
    deps.turns.turnEnded({ ...names, ...done.timing, outcome: done.status, firstOutputMs: firstMs });
    const log = { turnId: done.turnId, runId: attempt.runId, epoch: attempt.epoch };
    if (done.status === 'FAILED') deps.log.warn('turn failed', { ...log, reason: end.reason ?? 'ERROR', detail });
    else deps.log.info('turn ended', { ...log, status: done.status, entries: kept.entries.length });
    return { kind: 'ended' };
  });
}

/** From the question to the first words, milliseconds: the whole time without what has passed since then. null: no words, or told to another server. */
function firstOutputMs({ deps, state }: Session, { runId, epoch }: Attempt, durationMs: number): number | null {
  const first = state.firstWords;
  if (first?.runId !== runId || first.epoch !== epoch) return null;
  return Math.max(0, durationMs - (deps.clock.monotonicMs() - first.atMs));
}

async function isBehind(session: Session, rows: ConversationRows): Promise<boolean> {
  const fresh = await session.reload();
  return fresh.version !== rows.version;
}

function ended(
  session: Session,
  rows: ConversationRows,
  done: { version: number; turnId: TurnId; runId: RunId; epoch: number; entryIds?: readonly EntryId[] },
): void {
  session.deps.partials.clear(rows.id, done.turnId, done.epoch);
  publish(session, rows, {
    version: done.version,
    turnIds: [done.turnId],
    entryIds: [...(done.entryIds ?? [])],
    sealedRunIds: [done.runId],
    slots: true,
  });
  session.deps.capacity.slotsChanged();
}

/** The driver is through with a run. HANDED_ON gives the attempt back; COMPLETED without an ended turn fails it. */
export async function endRun(session: Session, attempt: Attempt, end: RunEndRequest): Promise<EndRunReply> {
  const { deps, state } = session;
  if (end.outcome === 'COMPLETED') {
    const failed = await endTurn(session, attempt, {
      outcome: 'FAILED',
      reason: 'ERROR',
      detail: 'loop_crashed',
      entries: [],
      lastPartial: null,
    });
    return failed.kind === 'refused' ? { kind: 'lost' } : failed;
  }
  return atVersion<EndRunReply>(session, async (rows) => {
    if (!leasedBy(rows, attempt)) return state.rows === rows && (await isBehind(session, rows)) ? null : { kind: 'lost' };
    const key = { runId: attempt.runId, epoch: attempt.epoch, sandboxId: attempt.sandbox.sandboxId };
    const done = await handOnRun(deps.db, { ...key, conversationId: rows.id, version: rows.version });
    if (!done) return null;
    state.rows = null;
    deps.self.refresh(rows.id); // the turn that came back needs a sandbox, or another pull
    ended(session, rows, { ...done, runId: attempt.runId, epoch: attempt.epoch });
    const names = { conversationId: rows.id, turnId: done.turnId, runId: attempt.runId };
    deps.turns.attemptEnded({ ...names, epoch: attempt.epoch, how: 'handed-on', ageMs: done.timing.attemptMs });
    if (done.status === 'STOPPED') deps.turns.turnEnded({ ...names, ...done.timing, outcome: 'STOPPED', firstOutputMs: null });
    deps.log.info('run handed on', { turnId: done.turnId, runId: attempt.runId, epoch: attempt.epoch, status: done.status });
    return { kind: 'ended' };
  });
}
