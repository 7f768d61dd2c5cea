/**
 * Owns: the one fault type and the closed list of codes that a client can see.
 * Does not own: HTTP statuses (src/http/fault-status.ts) or SQLSTATEs (db/faults.ts).
 * An expected loss (lease lost, turn stopped, queue full) is a return value of the ledger, not an exception;
 * it becomes a fault only at the border where a client must read it.
 */

/** Codes are part of the wire contract: a client branches on them. Never rename one. */
export const FAULT_CODES = [
  'BAD_REQUEST',
  'BAD_JSON',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'TEXT_EMPTY',
  'TEXT_TOO_LONG',
  'REQUEST_ID_REUSED',
  'FOLLOW_UPS_FULL',
  'NAME_TAKEN',
  'UNAUTHENTICATED',
  'SIGNED_OUT',
  'SIGN_IN_UNAVAILABLE',
  'FORBIDDEN',
  'ORIGIN_REFUSED',
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'WORKSPACE_NOT_FOUND',
  'CONVERSATION_NOT_FOUND',
  'TURN_NOT_FOUND',
  'ENTRY_NOT_FOUND',
  'TURN_ALREADY_ENDED',
  'ACTION_REFUSED',
  'KEY_REUSED',
  'TOO_MANY_STREAMS',
  'PERSON_ERASED',
  'MENTOR_LEASE_LOST',
  'MENTOR_TURN_STOPPED',
  'PROPOSAL_REFUSED',
  'DOCUMENT_NOT_FOUND',
  'LOAD_REFUSED',
  'SANDBOX_UNKNOWN',
  'UPSTREAM_STALLED',
  'UPSTREAM_PAUSED',
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_ERROR',
  'NO_MODEL',
  'BUSY',
  'DRAINING',
  'DATABASE_UNAVAILABLE',
  'INTERNAL',
] as const;
export type FaultCode = (typeof FAULT_CODES)[number];

/**
 * What a caller may do: `never` (the same call fails again), `same` (the same call may be repeated at once),
 * `later` (the same call may be repeated after a pause).
 */
export type Retry = 'never' | 'same' | 'later';

export interface FaultOptions {
  retry?: Retry;
  cause?: unknown;
  /** Extra members of the problem document, for example `{stop: 'developer'}`. Never words of a person, a model or a provider. */
  extra?: Readonly<Record<string, string | number | boolean | null>>;
}

/** A failure with a code that a client can branch on and a sentence that tells a person what to do. */
export class RuntimeFault extends Error {
  override readonly name = 'RuntimeFault';
  readonly code: FaultCode;
  readonly retry: Retry;
  readonly publicMessage: string;
  readonly extra: Readonly<Record<string, string | number | boolean | null>>;

  constructor(code: FaultCode, publicMessage: string, options: FaultOptions = {}) {
    super(`${code}: ${publicMessage}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.publicMessage = publicMessage;
    this.retry = options.retry ?? 'never';
    this.extra = options.extra ?? {};
  }
}

/** The fault itself, or an INTERNAL one that wraps whatever was thrown. */
export function asFault(error: unknown): RuntimeFault {
  if (error instanceof RuntimeFault) return error;
  return new RuntimeFault('INTERNAL', 'Something went wrong on our side. Try again.', { retry: 'later', cause: error });
}
