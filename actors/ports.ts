/**
 * Owns: what the actors need from the rest of the server, as interfaces. main.ts plugs the real ones in.
 */
import type { LeasedAction, Settlement } from '../db/slack/outbox.ts';
import type { Change } from '../src/contract/changes.ts';
import type { ConversationId, SandboxId, TurnId } from '../src/kernel/ids.ts';

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
}

export interface RunnerView {
  readonly sandboxId: SandboxId | null;
  readonly state: 'starting' | 'warm' | 'idle' | 'busy' | 'ending';
  readonly pid: number | null;
  readonly startedAt: number;
}

/** Told what happened to turns, for metrics. Must not throw. */
export interface TurnObserver {
  turnEnded(turn: {
    readonly surface: 'app' | 'slack';
    readonly outcome: 'DONE' | 'FAILED' | 'STOPPED';
    /** From the question to its first claim, milliseconds. */
    readonly queueWaitMs: number | null;
    readonly firstOutputMs: number | null;
    /** From the question to the end, milliseconds. */
    readonly durationMs: number;
  }): void;
  attemptTakenBack(cause: 'sandbox' | 'deadline' | 'lease'): void;
  /** A call of an attempt that has lost its run. */
  fencingRejected(): void;
  leaseRenewed(outcome: 'renewed' | 'lost'): void;
  /** `failed`: the sandbox could not be started, or died before it was given a run. */
  sandboxStart(outcome: 'started' | 'failed'): void;
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
