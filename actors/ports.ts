/**
 * Owns: what the actors need from the rest of the server, as interfaces. main.ts plugs the real ones in.
 */
import type { LeasedAction, Settlement } from '../db/slack/outbox.ts';
import type { Change } from '../src/contract/changes.ts';
import type { ConversationId, RunId, SandboxId, TurnId } from '../src/kernel/ids.ts';

/** Told after a commit, never inside a transaction. Must not throw and must not block. */
export interface ChangeSink {
  publish(change: Change): void;
}

/** Partial answers live in memory only. */
export interface PartialSink {
  /** Adds what an attempt has written. `resync`: the earlier deltas are not known here, the loop must send the whole text. */
  publish(partial: AttemptPartial): 'ok' | 'resync';
  /** Attempts up to `epoch` are over (end, requeue, take-back): what they had written is dropped everywhere. null: the turn is over for good. */
  clear(conversationId: ConversationId, turnId: TurnId, epoch: number | null): void;
}

export interface AttemptPartial {
  readonly workspaceId: string;
  readonly accountId: string;
  readonly conversationId: ConversationId;
  readonly turnId: TurnId;
  readonly epoch: number;
  /** UTF-16 units before `text`. */
  readonly offset: number;
  readonly text: string;
  readonly stage: string | null;
  /** `text` is the whole answer so far. */
  readonly full: boolean;
  /** The n-th report of the attempt; a loop of an older version does not say it. */
  readonly nth?: number;
}

/** Starts and ends sandboxes of one kind (local processes, pods). One runner serves one conversation and is never reused for another. */
export interface SandboxHost {
  /** Resolves when a runner has accepted the assignment; rejects with BUSY when no more runners may be started. */
  start(request: { sandboxId: SandboxId; conversationId: ConversationId; credential: string }): Promise<void>;
  /** Ends the runner gracefully, then by force. */
  end(sandboxId: SandboxId): Promise<void>;
  /** Called once per sandbox when its runner is gone. */
  onExit(listener: (sandboxId: SandboxId, how: 'asked' | 'crashed') => void): void;
  list(): readonly RunnerView[];
  /** Asks busy runners to hand their run on, waits at most `graceMs`, then kills what is left. */
  drain(graceMs: number): Promise<void>;
  /** Absent: sandboxes end with this server. */
  readonly outliving?: OutlivingSandboxes;
}

/** Sandboxes that live on when their server ends: another takes them over (spec/decisions/0038). */
export interface OutlivingSandboxes {
  /** All live rows of this server, each sweep. The host takes over what it does not know, and forgets what is not among them. Must not throw. */
  follow(rows: readonly { sandboxId: SandboxId; conversationId: ConversationId; busy: boolean }[]): void;
  /** Its row has ended because it was idle: it gives back what it uses, and its conversation may get it again with another credential. */
  rest(sandboxId: SandboxId): Promise<void>;
}

export interface RunnerView {
  readonly sandboxId: SandboxId | null;
  readonly state: 'starting' | 'warm' | 'idle' | 'busy' | 'ending';
  readonly pid: number | null;
  readonly startedAt: number;
}

/** The ids of a turn, for traces; a metric has no room for them. */
export interface TurnNames {
  readonly conversationId: ConversationId;
  readonly turnId: TurnId;
  readonly runId: RunId;
}

export interface EndedTurnReport extends TurnNames {
  readonly surface: 'app' | 'slack';
  readonly outcome: 'DONE' | 'FAILED' | 'STOPPED';
  /** From the question to its first claim, milliseconds. */
  readonly queueWaitMs: number | null;
  readonly firstOutputMs: number | null;
  /** From the question to the end, milliseconds. */
  readonly durationMs: number;
  /** From the question to now, milliseconds: the loop of a stopped turn ends later than its turn. */
  readonly ageMs: number;
}

export interface EndedAttemptReport extends TurnNames {
  readonly epoch: number;
  /** What its turn became, or how it lost its run while its turn goes on. */
  readonly how: 'DONE' | 'FAILED' | 'STOPPED' | 'handed-on' | 'sandbox' | 'deadline' | 'lease';
  /** From its first call to now, milliseconds; null: it made none. */
  readonly ageMs: number | null;
}

/** Told what happened to turns, for metrics and traces. Must not throw. */
export interface TurnObserver {
  /** Once for each turn, however it ended. */
  turnEnded(turn: EndedTurnReport): void;
  /** Once for each attempt that this server saw end. */
  attemptEnded(attempt: EndedAttemptReport): void;
  attemptTakenBack(cause: 'sandbox' | 'deadline' | 'lease'): void;
  /** A call of an attempt that has lost its run. */
  fencingRejected(): void;
  leaseRenewed(outcome: 'renewed' | 'lost'): void;
  /** `failed`: the sandbox could not be started, or died before it was given a run. */
  sandboxStart(outcome: 'started' | 'failed'): void;
  /** Words were erased: an entry by its person, or what came from elsewhere (a disconnect). */
  erased(what: 'entry' | 'content'): void;
}

/** What was learnt of an attempt; `pauseMs`: Slack wants no such call from this team's app for so long. */
export interface Verdict {
  readonly to: Settlement;
  readonly pauseMs?: number;
}

/** Slack, as the outbox sees it. Neither call rejects: what is not known is UNCERTAIN. */
export interface SlackSender {
  /** At most one request leaves. */
  post(action: LeasedAction): Promise<Verdict>;
  /** Reads back whether an action is in the history of its thread. */
  find(action: LeasedAction): Promise<Verdict>;
}

/** Told what became of attempts, for metrics. Must not throw. */
export interface OutboxObserver {
  outboxOutcome(state: Settlement['state']): void;
}
