/**
 * Owns: what a failure asks of the person, by the code of the turn: only how it looks and whether asking again makes sense.
 * Does not own: the words, which are the server's.
 */

/** `wait`: time cures it. `settings`: an administrator does. `final`: nothing does. `fault`: this reply went wrong. */
export type FailureCause = 'wait' | 'settings' | 'final' | 'fault';

const CAUSES: Readonly<Record<string, FailureCause>> = {
  STALLED: 'wait',
  DEADLINE: 'wait',
  NOT_STARTED: 'wait',
  MODEL_PAUSED: 'wait',
  AI_CHOICE: 'settings',
  NO_MODEL: 'settings',
  MODEL_TOO_SMALL: 'settings',
  UNPRICED: 'settings',
  BUDGET: 'settings',
  PERSON_ERASED: 'final',
};

/** A code that this version does not know is a fault like any other. */
export function causeOf(code: string | undefined): FailureCause {
  return (code !== undefined && Object.hasOwn(CAUSES, code) && CAUSES[code]) || 'fault';
}
