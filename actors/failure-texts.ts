/**
 * Owns: the exact words of a failed turn (seed, "How a turn fails"). The only place that holds them.
 */

export interface TurnFailure {
  /** Part of the wire: turn.error.code. */
  readonly code: 'NOT_STARTED' | 'DEADLINE' | 'ERROR' | 'STALLED';
  readonly text: string;
}

export interface FailureTexts {
  readonly notStarted: TurnFailure;
  readonly deadline: TurnFailure;
  readonly error: TurnFailure;
  readonly stalled: TurnFailure;
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
  };
}
