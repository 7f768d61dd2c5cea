/**
 * Owns: the exact words of a failed turn (seed, "How a turn fails"). The only place that holds them.
 */
import type { RefusalTexts } from '../db/models/admission.ts';
import { SMALLEST_MODEL } from '../src/contract/limits.ts';

export interface TurnFailure {
  /** Part of the wire: turn.error.code. */
  readonly code: 'NOT_STARTED' | 'DEADLINE' | 'ERROR' | 'STALLED' | 'SKIPPED';
  readonly text: string;
}

export interface FailureTexts {
  readonly notStarted: TurnFailure;
  readonly deadline: TurnFailure;
  readonly error: TurnFailure;
  readonly stalled: TurnFailure;
  /** An operator took the question out of the queue. */
  readonly skipped: TurnFailure;
  /** Admission refuses the turn; the code is the key. */
  readonly refusals: RefusalTexts;
}

/** `assistantName` is HEPH_ASSISTANT_NAME. */
export function failureTexts(assistantName: string): FailureTexts {
  return {
    notStarted: { code: 'NOT_STARTED', text: `${assistantName} could not start. Try again in a moment.` },
    deadline: { code: 'DEADLINE', text: `${assistantName} took too long to reply and stopped. Try again.` },
    error: { code: 'ERROR', text: `${assistantName} could not finish this reply. Try again.` },
    stalled: {
      code: 'STALLED',
      text: `${assistantName}'s AI model stopped responding, so ${assistantName} could not finish this reply. Try again in a moment.`,
    },
    skipped: {
      code: 'SKIPPED',
      text: `An operator took this question out of the queue, so ${assistantName} did not answer it. Ask again if it still matters.`,
    },
    refusals: refusalTexts(assistantName),
  };
}

const count = new Intl.NumberFormat('en');

function refusalTexts(name: string): RefusalTexts {
  const smallest = `${count.format(SMALLEST_MODEL.contextTokens)} tokens of context and ${count.format(SMALLEST_MODEL.outputTokens)} tokens of output`;
  return {
    PERSON_ERASED: `Your personal data is being erased, so ${name} did not start this reply.`,
    AI_CHOICE: `AI is switched off for you in this workspace, so ${name} did not start this reply. Ask an administrator to switch it on.`,
    NO_MODEL: `${name} has no AI model that it may use, so it did not start this reply. Ask an administrator to choose one.`,
    MODEL_TOO_SMALL: `${name}'s AI model is too small: it needs ${smallest}. Ask an administrator to choose a larger one.`,
    UNPRICED: `${name}'s AI model has no price, so its cost cannot be held against the budget. Ask an administrator to set its price.`,
    BUDGET: `This month's AI budget is spent, so ${name} did not start this reply. Ask an administrator to raise it, or wait for next month.`,
    MODEL_PAUSED: `${name}'s AI model is not responding right now, so ${name} did not start this reply. Try again in a few minutes.`,
  };
}
