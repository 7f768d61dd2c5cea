/**
 * Owns: the faults that the kernel itself answers with, and how a thrown value becomes one.
 * BUSY and DRAINING may be repeated later: the command did not run, or the ledger makes its repetition harmless (rule R2).
 */
import { asFault, RuntimeFault } from '../../src/kernel/faults.ts';
import { errorKind } from '../../src/kernel/log.ts';
import type { RefusalReason } from './types.ts';

const BUSY_TEXT = 'Too much is waiting here at the moment. Try again in a few seconds.';
const SLOW_TEXT = 'This took too long, so we stopped it. Try again in a few seconds.';
const DRAINING_TEXT = 'This server is shutting down. Try again, another one will answer.';

export function refusalFault(reason: RefusalReason): RuntimeFault {
  return reason === 'draining' ? drainingFault() : busyFault();
}

export function busyFault(): RuntimeFault {
  return new RuntimeFault('BUSY', BUSY_TEXT, { retry: 'later' });
}

export function drainingFault(): RuntimeFault {
  return new RuntimeFault('DRAINING', DRAINING_TEXT, { retry: 'later' });
}

/** The reason of the signal of a command that ran too long. */
export function overrunFault(): RuntimeFault {
  return new RuntimeFault('BUSY', SLOW_TEXT, { retry: 'later' });
}

/** The caller's fault for `error`. I/O that ended because its signal aborted is reported as the reason of that signal. */
export function crashFault(error: unknown, aborted: RuntimeFault | null): RuntimeFault {
  if (aborted === null || error instanceof RuntimeFault) return asFault(error);
  return new RuntimeFault(aborted.code, aborted.publicMessage, { retry: aborted.retry, cause: error });
}

/** The kind of a thrown value without its words; a fault is named with what caused it: `INTERNAL TypeError`. */
export function crashKind(error: unknown): string {
  if (!(error instanceof RuntimeFault)) return errorKind(error);
  return error.cause === undefined ? error.code : `${error.code} ${errorKind(error.cause)}`;
}
