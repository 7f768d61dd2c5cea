/**
 * Owns: that a kind cannot be created with a bound that bounds nothing.
 */
import type { KindOptions } from './types.ts';

export type CheckedOptions = Required<KindOptions>;

/** The options with every default filled in. Throws a RangeError that names the kind, the option, the value and what is allowed. */
export function checkOptions(kind: string, options: KindOptions): CheckedOptions {
  const { mailboxMax, actorsMax, idleMs, handlerMs, sweepMs, mailboxWaitMs = handlerMs } = options;
  const refuse = (name: string, value: number, allowed: string): never => {
    throw new RangeError(`actor kind ${kind}: ${name} is ${value}, allowed is ${allowed}`);
  };
  for (const [name, value] of Object.entries({ mailboxMax, actorsMax })) {
    if (!Number.isSafeInteger(value) || value < 1) refuse(name, value, 'a whole number from 1');
  }
  for (const [name, value] of Object.entries({ handlerMs, sweepMs, mailboxWaitMs })) {
    if (!(value > 0)) refuse(name, value, 'a duration above 0 ms');
  }
  if (!(idleMs >= 0)) refuse('idleMs', idleMs, 'a duration from 0 ms');
  return { mailboxMax, actorsMax, idleMs, handlerMs, sweepMs, mailboxWaitMs };
}
