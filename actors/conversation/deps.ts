/**
 * Owns: what a ConversationActor needs from its neighbours, as narrow functions. actors/index.ts plugs them together.
 */
import type { LeaseTimes } from '../../db/ledger/claim.ts';
import type { Database } from '../../db/pool.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import type { Log } from '../../src/kernel/log.ts';
import type { FailureTexts } from '../failure-texts.ts';
import type { ChangeSink, PartialSink, TurnObserver } from '../ports.ts';
import type { ParkedPull } from './pulls.ts';
import type { Renewals } from './renewals.ts';

export interface ConversationDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly changes: ChangeSink;
  readonly partials: PartialSink;
  readonly turns: TurnObserver;
  readonly renewals: Renewals;
  readonly times: LeaseTimes;
  readonly maxFollowUps: number;
  readonly texts: FailureTexts;
  /** False once this server stops claiming: a claim that reaches nobody then is handed back. */
  readonly claiming: () => boolean;
  /** Conversations with an actor in memory. */
  readonly active: Set<ConversationId>;
  readonly capacity: {
    /** This pull waits and its conversation has a claimable turn. */
    offer(pull: ParkedPull): void;
    /** No pull is parked here for the conversation's claimable turn: it ends now if it is not admitted. */
    judge(conversationId: ConversationId): void;
    /** A slot of the installation may have come free. */
    slotsChanged(): void;
  };
  readonly sandboxes: {
    /** The conversation has a claimable turn and no pull is parked here. */
    wanted(conversationId: ConversationId): void;
    /** A sandbox here pulls and its conversation has nothing for it. */
    idle(): void;
  };
  readonly self: {
    /** Look at the rows of this conversation once more. */
    refresh(id: string): void;
  };
}
