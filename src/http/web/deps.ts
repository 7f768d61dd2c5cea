/**
 * Owns: what the routes of the web listener share.
 */
import type { ChangeSink, Runtime } from '../../../actors/index.ts';
import type { Database } from '../../../db/pool.ts';
import type { Conversation, Turn } from '../../contract/web.ts';
import type { Clock } from '../../kernel/clock.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import type { SignInDeps } from '../auth/deps.ts';
import type { LiveStreams, SessionFacts, SlackDoor, Stages } from '../ports.ts';

export interface WebDeps {
  readonly runtime: Pick<Runtime, 'submitQuestion' | 'stopTurn' | 'eraseEntry' | 'voteEntry'>;
  readonly db: Database;
  readonly authenticator: Authenticator;
  readonly live: LiveStreams;
  readonly stages: Stages;
  /** Told of read markers: the one write that no actor makes. */
  readonly changes: ChangeSink;
  readonly session: SessionFacts;
  readonly clock: Clock;
  /** Absent: this server takes nothing from Slack. */
  readonly slack?: SlackDoor | null;
  /** Absent: nobody signs in here (HEPH_AUTH=local). */
  readonly signIn?: Omit<SignInDeps, 'db' | 'authenticator'> | null;
}

export function withStage(turn: Turn, stages: Stages): Turn {
  return turn.status === 'RUNNING' ? { ...turn, stage: stages.stageOf(turn.id) } : turn;
}

/** A conversation whose running turns say what they do. */
export function withStages(conversation: Conversation, stages: Stages): Conversation {
  return { ...conversation, turns: conversation.turns.map((turn) => withStage(turn, stages)) };
}

export const NO_CONVERSATION = 'There is no such conversation for this account. Load the page again.';
export const NO_TURN = 'There is no such turn for this account. Load the page again.';
export const NO_ENTRY = 'There is no such message for this account. Load the page again.';

export function noConversation(): RuntimeFault {
  return new RuntimeFault('CONVERSATION_NOT_FOUND', NO_CONVERSATION);
}

export function noEntry(): RuntimeFault {
  return new RuntimeFault('ENTRY_NOT_FOUND', NO_ENTRY);
}

export function personErased(): RuntimeFault {
  return new RuntimeFault('PERSON_ERASED', 'The personal data of this account is being erased, so nothing new is stored.');
}
