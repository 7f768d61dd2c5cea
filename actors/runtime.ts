/**
 * Owns: the types of the one door to the actors. HTTP routes call `Runtime` and translate its replies; they never see an actor or a row.
 * Expected losses are replies (`kind`), not exceptions; exceptions are RuntimeFaults (BUSY, DRAINING, DATABASE_UNAVAILABLE, INTERNAL).
 */

import type { SlackOrigin, WrittenQuestion } from '../db/ledger/submit.ts';
import type {
  AgentRun,
  ContextResponse,
  LeaseResponse,
  PartialRequest,
  PartialResponse,
  RunEndRequest,
  TurnEndRequest,
} from '../src/contract/agent.ts';
import type { StopReason, Surface } from '../src/contract/common.ts';
import type { PageContext } from '../src/contract/web.ts';
import type { AccountId, ConversationId, EntryId, RunId, SandboxId, TurnId, WorkspaceId } from '../src/kernel/ids.ts';

/** Who asks: an account in a workspace, already authenticated and checked to be an active member. */
export interface Member {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
}

/** A sandbox that showed a valid credential. */
export interface SandboxIdentity {
  readonly sandboxId: SandboxId;
  readonly workspaceId: WorkspaceId;
  readonly conversationId: ConversationId;
}

/** One attempt of one run, as a sandbox names it. */
export interface Attempt {
  readonly sandbox: SandboxIdentity;
  readonly runId: RunId;
  readonly epoch: number;
}

export interface QuestionInput extends Member {
  /** null: the account's main conversation, created by its first question. */
  readonly conversationId: ConversationId | null;
  readonly requestId: string;
  readonly surface: Surface;
  /** Normalised (wellFormed), not blank, within the limit: the route has checked it. */
  readonly text: string;
  readonly page: PageContext | null;
  /** Set when the surface is slack. */
  readonly slack?: SlackOrigin;
}

export type SubmitReply =
  /** `written`: its rows, unless they were there before. */
  | { readonly kind: 'accepted'; readonly turnId: TurnId; readonly entryId: EntryId; readonly written: WrittenQuestion | null }
  | { readonly kind: 'full' }
  | { readonly kind: 'request-id-reused' }
  | { readonly kind: 'no-conversation' }
  | { readonly kind: 'person-erased' }
  /** Only of a question from Slack. */
  | { readonly kind: 'disconnected' };

export type StopReply = { readonly kind: 'stopped' } | { readonly kind: 'already-ended' } | { readonly kind: 'no-turn' };

/** Why a call of an attempt is refused: 409 MENTOR_LEASE_LOST, or 409 MENTOR_TURN_STOPPED with `stop`. */
export type Refusal = { readonly kind: 'lost' } | { readonly kind: 'stopped'; readonly stop: StopReason };

/** Writes to entries that are there already. An entry that the member is not shown is none of theirs (`no-entry`, or nothing happens). */
export interface EntryWrites {
  /** The entry and every copy of its words. An erased question stops its turn, and nothing of that attempt is stored. Repeats change nothing. */
  eraseEntry(member: Member, id: EntryId): Promise<void>;
  /** New words for a question; `text` is normalised, not blank and within the limit. */
  editEntry(member: Member, id: EntryId, text: string): Promise<{ readonly kind: 'edited' | 'no-entry' | 'person-erased' }>;
  /** null takes the vote back. */
  voteEntry(member: Member, id: EntryId, vote: 'up' | 'down' | null): Promise<{ readonly kind: 'voted' | 'no-entry' | 'person-erased' }>;
}

export interface Runtime extends EntryWrites {
  submitQuestion(input: QuestionInput): Promise<SubmitReply>;
  stopTurn(member: Member, turnId: TurnId): Promise<StopReply>;
  /** Waits up to `waitMs` for the sandbox's next run; null when there is none, or when `signal` aborts (the client hung up). */
  claimNext(sandbox: SandboxIdentity, waitMs: number, signal: AbortSignal): Promise<AgentRun | null>;
  readContext(attempt: Attempt): Promise<{ readonly kind: 'context'; readonly context: ContextResponse } | Refusal>;
  renewLease(attempt: Attempt): Promise<({ readonly kind: 'renewed' } & LeaseResponse) | { readonly kind: 'lost' }>;
  publishPartial(attempt: Attempt, partial: PartialRequest): Promise<({ readonly kind: 'taken' } & PartialResponse) | Refusal>;
  endTurn(
    attempt: Attempt,
    end: TurnEndRequest,
  ): Promise<{ readonly kind: 'ended' } | { readonly kind: 'lost' } | { readonly kind: 'refused'; readonly why: string }>;
  endRun(attempt: Attempt, end: RunEndRequest): Promise<{ readonly kind: 'ended' } | { readonly kind: 'lost' }>;
}
