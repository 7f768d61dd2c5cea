/**
 * Owns: what an exception of PostgreSQL or of its driver means. SQLSTATEs appear only in db.
 * An unknown outcome (the connection was lost while a statement ran) is DATABASE_UNAVAILABLE: the caller repeats by its own id
 * (requestId, run and epoch), never blindly; src/kernel/transient.ts says which path repeats.
 */
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  ConnectionError,
  IntegrityConstraintViolationError,
  StatementCancelledError,
  StatementTimeoutError,
} from 'slonik';
import { RuntimeFault } from '../src/kernel/faults.ts';

/** SQLSTATEs that mean "not now": connection trouble, out of resources, being shut down, cannot connect now, no longer the primary. */
const NOT_NOW = /^(08|53|57P0|25006)/;
/** A deadlock, a serialization failure, a lock that was not to be had: nothing was written. The driver has tried again a few times. */
const CONTENDED = /^(40|55P03)/;
/** Words of pg and slonik for a connection that is gone; these errors have no code. */
const GONE =
  /Connection terminated|timeout expired|Client has encountered a connection error|Client is (pending destroy|destroyed)|Connection pool (has|is being) /;
const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
]);

function codes(error: unknown, depth = 0): string[] {
  if (!(error instanceof Error) || depth > 4) return [];
  const own = (error as { code?: unknown }).code;
  const inner = error instanceof AggregateError ? error.errors.flatMap((e) => codes(e, depth + 1)) : [];
  return [...(typeof own === 'string' ? [own] : []), ...codes(error.cause, depth + 1), ...inner];
}

/** True when the error is the violation of the named constraint or unique index. */
export function violates(error: unknown, constraint: string): boolean {
  const seen = error instanceof RuntimeFault ? error.cause : error;
  return seen instanceof IntegrityConstraintViolationError && seen.constraint === constraint;
}

/** True when the database cannot be reached, or the connection was lost (then the outcome of a write is unknown). */
export function isUnavailable(error: unknown): boolean {
  return (
    error instanceof BackendTerminatedError ||
    error instanceof BackendTerminatedUnexpectedlyError ||
    error instanceof ConnectionError ||
    error instanceof StatementTimeoutError ||
    error instanceof StatementCancelledError ||
    codes(error).some((code) => NOT_NOW.test(code) || NETWORK.has(code)) ||
    (error instanceof Error && GONE.test(error.message))
  );
}

/** The database cannot be reached, or did not answer: the outcome of a write is unknown. */
export function unavailableFault(cause?: unknown): RuntimeFault {
  const message = 'The database does not answer. Try again in a moment.';
  return new RuntimeFault('DATABASE_UNAVAILABLE', message, { retry: 'later', ...(cause === undefined ? {} : { cause }) });
}

/** Nothing was written; the same call may be repeated after a pause. */
export function busyFault(cause?: unknown): RuntimeFault {
  return new RuntimeFault('BUSY', 'The server is busy. Try again in a moment.', {
    retry: 'later',
    ...(cause === undefined ? {} : { cause }),
  });
}

/** A fault for whatever a query threw; faults pass through. */
export function databaseFault(error: unknown): RuntimeFault {
  if (error instanceof RuntimeFault) return error;
  if (isUnavailable(error)) return unavailableFault(error);
  if (codes(error).some((code) => CONTENDED.test(code))) return busyFault(error);
  return new RuntimeFault('INTERNAL', 'Something went wrong on our side. Try again.', { retry: 'later', cause: error });
}
