/**
 * Owns: the schemas that several wires share. `jitless` keeps zod from probing `eval`, which our content security policy refuses.
 */
import { z } from 'zod';
import { isUuid } from '../kernel/ids.ts';

z.config({ jitless: true });

/** An id on the wire: a lower-case uuid (ours are version 7). */
export const idSchema = z.string().refine(isUuid, 'must be a lower-case uuid').meta({ format: 'uuid' });

/** A point in time on the wire: ISO 8601, UTC, milliseconds, for example `2026-10-08T07:12:03.120Z`. */
export const timeSchema = z.iso.datetime().meta({ format: 'date-time' });

export const turnStatusSchema = z.enum(['QUEUED', 'RUNNING', 'DONE', 'STOPPED', 'FAILED']);
export type TurnStatus = z.infer<typeof turnStatusSchema>;

/** RFC 9457 problem document. `code` is stable and is what a client branches on; `detail` is for a person. */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  code: z.string(),
  detail: z.string(),
  /** `never`, `same` or `later`: whether the same request may be sent again. */
  retry: z.enum(['never', 'same', 'later']),
  /** The server's id of this request, to quote to an operator. */
  instance: z.string().optional(),
  /** Which members of the request were refused and why. */
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  /** Why a turn's calls are refused: only with MENTOR_TURN_STOPPED. */
  stop: z.enum(['developer', 'deadline']).optional(),
  /** Where a browser goes to sign in: only with SIGNED_OUT. */
  signInUrl: z.string().optional(),
  /** How the turn ended: only with TURN_ALREADY_ENDED. */
  turnStatus: turnStatusSchema.optional(),
});
export type Problem = z.infer<typeof problemSchema>;

export const surfaceSchema = z.enum(['app', 'slack']);
export type Surface = z.infer<typeof surfaceSchema>;
export const stopReasonSchema = z.enum(['developer', 'deadline']);
/** Why a running attempt must end: its person stopped it, or its time is over. */
export type StopReason = z.infer<typeof stopReasonSchema>;
