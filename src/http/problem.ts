/**
 * Owns: errors on the wire. Whatever a route throws becomes one problem document (RFC 9457); what is not a fault is logged and told as
 * INTERNAL without its words.
 */
import type Koa from 'koa';
import type { Problem } from '../contract/common.ts';
import { asFault, type RuntimeFault } from '../kernel/faults.ts';
import type { Log } from '../kernel/log.ts';
import { FAULT_STATUS } from './fault-status.ts';
import { InputFault } from './input.ts';

/** `FOLLOW_UPS_FULL` -> `urn:heph:problem:follow-ups-full`. Stable, like the code. */
export function problemType(code: string): string {
  return `urn:heph:problem:${code.toLowerCase().replaceAll('_', '-')}`;
}

/** The document for a fault. `requestId` names this occurrence. */
export function toProblem(fault: RuntimeFault, requestId: string): Problem {
  const { status, title } = FAULT_STATUS[fault.code];
  return {
    ...fault.extra,
    type: problemType(fault.code),
    title,
    status,
    code: fault.code,
    detail: fault.publicMessage,
    retry: fault.retry,
    instance: `urn:uuid:${requestId}`,
    ...(fault instanceof InputFault ? { errors: [...fault.errors] } : {}),
  };
}

/** Turns what a route throws into its problem document. Statuses of 500 are logged with their cause. */
export function problems(log: Log): Koa.Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const fault = asFault(error);
      const requestId = String(ctx.state['requestId']);
      const { status, retryAfterS } = FAULT_STATUS[fault.code];
      if (status === 500) log.error('http.failed', { requestId, route: String(ctx.state['route'] ?? 'none') }, fault.cause ?? error);
      if (retryAfterS !== undefined) ctx.set('Retry-After', String(retryAfterS));
      ctx.status = status;
      ctx.type = 'application/problem+json';
      ctx.body = JSON.stringify(toProblem(fault, requestId));
    }
  };
}
