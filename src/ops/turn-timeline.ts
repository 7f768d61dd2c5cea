/**
 * Owns: what happened to one turn, in order: the question, each attempt, model calls, sandboxes, entries, actions of operators, the end.
 */
import { readCalls } from '../../db/models/usage.ts';
import { readActionsOf } from '../../db/ops/actions.ts';
import { type AttemptFacts, readAttempts } from '../../db/ops/conversation.ts';
import { readTurnEntries, readTurnSandboxes } from '../../db/ops/timeline.ts';
import type { TurnFacts } from '../../db/ops/turn-facts.ts';
import type { Executor } from '../../db/pool.ts';
import type { AttemptLine } from '../contract/operator-views.ts';
import type { TimelineEvent } from '../contract/operators.ts';

/** Oldest first. */
export async function readTimeline(db: Executor, facts: TurnFacts): Promise<readonly TimelineEvent[]> {
  const { id } = facts;
  const [attempts, calls] = await Promise.all([readAttempts(db, { turn: id }), readCalls(db, id)]);
  const [entries, sandboxes, actions] = await Promise.all([readTurnEntries(db, id), readTurnSandboxes(db, id), readActionsOf(db, id)]);
  const events: TimelineEvent[] = [
    ...toAttempts(attempts).flatMap(attemptEvents),
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
      ...{ at: entry.created_at, what: 'entry', ...(entry.erased ? {} : { entryId: entry.id }) },
      detail: `${entry.seq} ${entry.kind}, ${entry.bytes} bytes${entry.erased ? ', erased' : ''}`,
    })),
    ...(facts.ended_at === null
      ? []
      : [{ at: facts.ended_at, what: 'ended', detail: [facts.status, facts.error_code].filter(Boolean).join(' ') }]),
  ];
  events.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  // The statement that stores a question writes several rows, each with a time of its own.
  return [{ at: facts.created_at, what: 'asked', detail: `on ${facts.surface}` }, ...events];
}

function attemptEvents({ epoch, how, beganAt, endedAt, host, calls }: AttemptLine): TimelineEvent[] {
  const began = beganAt === null ? [] : [{ at: beganAt, what: epoch === 1 ? 'claimed' : 'attempt', detail: beganText(epoch, calls, host) }];
  const over = endedAt !== null && how !== 'ENDED' ? [{ at: endedAt, what: 'attempt', detail: `epoch ${epoch} is over: ${how}` }] : [];
  return [...began, ...over];
}

function beganText(epoch: number, calls: number, host: string | null): string {
  return `epoch ${epoch}${host === null ? '' : ` on ${host}`}: ${calls} model call(s)`;
}

/** As the wire has them, with the epochs of which nothing but their number is left (their runs are older than the history). */
export function toAttempts(rows: readonly AttemptFacts[]): readonly AttemptLine[] {
  const lines: AttemptLine[] = [];
  for (const row of rows) {
    const {
      turn,
      epoch,
      sandbox,
      host,
      began_at: beganAt,
      ended_at: endedAt,
      how,
      lease_ms: leaseMs,
      deadline_ms: deadlineMs,
      calls,
    } = row;
    const last = lines.at(-1);
    for (let gone = last?.turn === turn ? last.epoch + 1 : 1; gone < epoch; gone++) lines.push(unknownAttempt(turn, gone));
    const waits = how === 'WAITING'; // its last attempt is older than the history
    lines.push(waits ? unknownAttempt(turn, epoch) : { turn, epoch, sandbox, host, beganAt, endedAt, how, leaseMs, deadlineMs, calls });
  }
  return lines;
}

function unknownAttempt(turn: string, epoch: number): AttemptLine {
  const nothing = { sandbox: null, host: null, beganAt: null, endedAt: null, leaseMs: null, deadlineMs: null };
  return { turn, epoch, ...nothing, how: 'unknown', calls: 0 };
}
