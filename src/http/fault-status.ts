/**
 * Owns: the one table from fault codes to HTTP statuses and titles. The compiler keeps it complete.
 */
import type { FaultCode } from '../kernel/faults.ts';

export interface FaultStatus {
  readonly status: number;
  /** The same for every occurrence of the code (RFC 9457). */
  readonly title: string;
  /** Value of Retry-After, seconds. */
  readonly retryAfterS?: number;
}

export const FAULT_STATUS: Readonly<Record<FaultCode, FaultStatus>> = {
  BAD_REQUEST: { status: 400, title: 'The request is not valid' },
  BAD_JSON: { status: 400, title: 'The body is not valid JSON' },
  BODY_TOO_LARGE: { status: 413, title: 'The body is too large' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'The body has a type that is not accepted' },
  TEXT_EMPTY: { status: 422, title: 'The text is empty' },
  TEXT_TOO_LONG: { status: 422, title: 'The text is too long' },
  REQUEST_ID_REUSED: { status: 409, title: 'The requestId was used for another question' },
  FOLLOW_UPS_FULL: { status: 409, title: 'Too many questions wait' },
  NAME_TAKEN: { status: 409, title: 'The name is taken' },
  UNAUTHENTICATED: { status: 401, title: 'Not signed in' },
  SIGNED_OUT: { status: 401, title: 'Nobody is signed in here' },
  SIGN_IN_UNAVAILABLE: { status: 503, title: 'The identity provider does not answer', retryAfterS: 5 },
  FORBIDDEN: { status: 403, title: 'Not allowed' },
  ORIGIN_REFUSED: { status: 403, title: 'Another site sent the request' },
  NOT_FOUND: { status: 404, title: 'Not found' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'The method is not allowed here' },
  WORKSPACE_NOT_FOUND: { status: 404, title: 'No such workspace' },
  CONVERSATION_NOT_FOUND: { status: 404, title: 'No such conversation' },
  TURN_NOT_FOUND: { status: 404, title: 'No such turn' },
  ENTRY_NOT_FOUND: { status: 404, title: 'No such entry' },
  TURN_ALREADY_ENDED: { status: 409, title: 'The turn has ended' },
  ACTION_REFUSED: { status: 409, title: 'The action does not fit what is there' },
  KEY_REUSED: { status: 409, title: 'The idempotency key was used for something else' },
  TOO_MANY_STREAMS: { status: 429, title: 'Too many event streams', retryAfterS: 15 },
  PERSON_ERASED: { status: 410, title: 'The account is being erased' },
  MENTOR_LEASE_LOST: { status: 409, title: 'The attempt has lost its run' },
  MENTOR_TURN_STOPPED: { status: 409, title: 'The turn was stopped' },
  PROPOSAL_REFUSED: { status: 422, title: 'The proposal was refused' },
  DOCUMENT_NOT_FOUND: { status: 404, title: 'No such document' },
  LOAD_REFUSED: { status: 422, title: 'The item cannot be loaded' },
  SANDBOX_UNKNOWN: { status: 401, title: 'The credential is not valid here' },
  UPSTREAM_STALLED: { status: 504, title: 'The model provider does not answer' },
  UPSTREAM_PAUSED: { status: 503, title: 'Calls to the model provider are paused', retryAfterS: 30 },
  UPSTREAM_UNREACHABLE: { status: 502, title: 'The model provider cannot be reached' },
  UPSTREAM_ERROR: { status: 502, title: 'The model provider answered with an error' },
  NO_MODEL: { status: 503, title: 'No model is configured' },
  BUSY: { status: 503, title: 'The server is busy', retryAfterS: 1 },
  DRAINING: { status: 503, title: 'The server shuts down', retryAfterS: 2 },
  DATABASE_UNAVAILABLE: { status: 503, title: 'The database does not answer', retryAfterS: 2 },
  INTERNAL: { status: 500, title: 'Something went wrong on the server' },
};
