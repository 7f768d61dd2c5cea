/**
 * Owns: the ids of a turn's trace, as functions of its run. A run lives as long as its turn: a second attempt, another server and a restart come to
 * the same trace, and a span names its parent without having seen it. A uuidv7 begins with the time, so it is hashed: samplers look at the bits.
 */
import { createHash } from 'node:crypto';

const TRACE_DIGITS = 32;
const SPAN_DIGITS = 16;

/** An id of zeros only is none; a hash of zeros only will not be seen, and must not pass. */
function digits(name: string, count: number): string {
  const hash = createHash('sha256').update(name).digest('hex').slice(0, count);
  return /[^0]/.test(hash) ? hash : hash.replace(/0$/, '1');
}

export function traceIdOf(runId: string): string {
  return digits(`trace ${runId}`, TRACE_DIGITS);
}

/** The whole turn: the root of its trace. */
export function turnSpanId(runId: string): string {
  return digits(`turn ${runId}`, SPAN_DIGITS);
}

/** From the question to its first claim. */
export function waitSpanId(runId: string): string {
  return digits(`wait ${runId}`, SPAN_DIGITS);
}

/** An attempt is named by its run and epoch. */
export function attemptSpanId(runId: string, epoch: number): string {
  return digits(`attempt ${runId} ${epoch}`, SPAN_DIGITS);
}

export function callSpanId(callId: string): string {
  return digits(`call ${callId}`, SPAN_DIGITS);
}
