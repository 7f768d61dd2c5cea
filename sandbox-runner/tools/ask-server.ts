/**
 * Owns: what a tool makes of the server's answer: the value, or an Error with words of ours for the model. Never words of the server.
 * Does not own: what a refusal means for the attempt (fate.ts hears it first).
 */
import type { Fate } from '../fate.ts';
import type { CallResult } from '../gateway-client.ts';

export interface AskOptions {
  readonly fate: Fate;
  /** What the model is told when the server refuses. */
  readonly refusal: (status: number) => string;
}

/** The value of an answer. Throws an Error with words for the model when there is none. */
export function answered<T>(result: CallResult<T>, options: AskOptions): T {
  if (result.kind === 'ok') return result.value;
  if (result.kind === 'cancelled') throw new Error('Aborted.');
  if (result.kind === 'unreachable') throw new Error('That is not possible right now. Try again in a moment, or go on without it.');
  options.fate.hearRefusal(result);
  throw new Error(options.refusal(result.status));
}
