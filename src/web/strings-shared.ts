/**
 * Owns: sentences that are put together the same way in every language.
 */
import type { Language } from './language.ts';
import type { ApiFailure } from './net/api.ts';

/** `problem`: the server says why itself. */
export function failureIn(words: { unreachable: string; garbled(status: number): string }): (failure: ApiFailure) => string {
  return (failure) => {
    switch (failure.kind) {
      case 'unreachable':
        return words.unreachable;
      case 'garbled':
        return words.garbled(failure.status);
      case 'problem':
        return failure.problem.detail || failure.problem.title;
    }
  };
}

export function count(language: Language, things: number, [one, many]: readonly [string, string]): string {
  return `${things.toLocaleString(language)} ${things === 1 ? one : many}`;
}
