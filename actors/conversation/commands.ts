/**
 * Owns: the commands of a ConversationActor and their replies.
 */

import type { Grant } from '../../db/ledger/claim.ts';
import type { LeaseResponse, PartialRequest, PartialResponse, RunEndRequest, TurnEndRequest } from '../../src/contract/agent.ts';
import type { TurnId } from '../../src/kernel/ids.ts';
import type { Attempt, QuestionInput, Refusal, SandboxIdentity, StopReply, SubmitReply } from '../runtime.ts';
import type { ParkedPull } from './pulls.ts';

export type ConversationCommand =
  | { readonly type: 'SubmitQuestion'; readonly input: QuestionInput }
  | { readonly type: 'StopTurn'; readonly turnId: TurnId }
  /** A sandbox asks for its next run. The pull is parked here; the caller waits on the pull, not on the mailbox. */
  | { readonly type: 'ClaimNext'; readonly pull: ParkedPull }
  /** The CapacityActor claimed a turn for a pull that was parked here. `delivered`: the pull was still open and has been answered. */
  | { readonly type: 'TurnClaimed'; readonly grant: Grant; readonly delivered: boolean }
  | { readonly type: 'PublishPartial'; readonly attempt: Attempt; readonly partial: PartialRequest }
  | { readonly type: 'RenewLease'; readonly attempt: Attempt }
  | { readonly type: 'EndTurn'; readonly attempt: Attempt; readonly end: TurnEndRequest }
  | { readonly type: 'EndRun'; readonly attempt: Attempt; readonly end: RunEndRequest }
  /** Rows changed elsewhere: another server, the reaper. `version` is what they have now; 0: look again, they may have. */
  | { readonly type: 'Changed'; readonly version: number };

export type EndTurnReply = { readonly kind: 'ended' } | { readonly kind: 'lost' } | { readonly kind: 'refused'; readonly why: string };
export type EndRunReply = { readonly kind: 'ended' } | { readonly kind: 'lost' };
export type PartialReply = ({ readonly kind: 'taken' } & PartialResponse) | Refusal;
export type LeaseReply = ({ readonly kind: 'renewed' } & LeaseResponse) | { readonly kind: 'lost' };
export type ClaimNextReply = { readonly kind: 'parked' };

export type ConversationReply =
  | SubmitReply
  | StopReply
  | ClaimNextReply
  | PartialReply
  | LeaseReply
  | EndTurnReply
  | EndRunReply
  | { readonly kind: 'noted' };

export type { Attempt, SandboxIdentity };
