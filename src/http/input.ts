/**
 * Owns: checking what a client sent against a schema of the contract.
 */
import type { z } from 'zod';
import { type FaultCode, RuntimeFault } from '../kernel/faults.ts';
import { type Id, isUuid } from '../kernel/ids.ts';

/** One member that was refused; `path` is dotted, empty for the whole. Names and kinds only, never values. */
export interface InputError {
  readonly path: string;
  readonly message: string;
}

/** Members reported at most. */
const ERRORS_MAX = 10;

/** A BAD_REQUEST that names the members. */
export class InputFault extends RuntimeFault {
  readonly errors: readonly InputError[];

  constructor(errors: readonly InputError[]) {
    const first = errors[0];
    const what = first ? `${first.path || 'the request'}: ${first.message}` : 'the request';
    super('BAD_REQUEST', `Correct what is refused and send the request again (${what}).`);
    this.errors = errors;
  }
}

/** The value as the schema gives it. Throws an InputFault that names the refused members. */
export function parseInput<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.slice(0, ERRORS_MAX);
  throw new InputFault(errors.map(({ path, message }) => ({ path: path.join('.'), message })));
}

/** An id from a path. What is no id names nothing, so it is `code` (a 404) and not a bad request. */
export function pathId<K extends string>(value: string | undefined, code: FaultCode, text: string): Id<K> {
  if (!isUuid(value)) throw new RuntimeFault(code, text);
  return value as Id<K>;
}

/** A whole number from a query, or null when it is absent. */
export function queryInteger(query: Readonly<Record<string, unknown>>, name: string, range: { min: number; max: number }): number | null {
  const value = query[name];
  if (value === undefined) return null;
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= range.min && number <= range.max) return number;
  throw new InputFault([{ path: name, message: `must be one whole number from ${range.min} to ${range.max}` }]);
}
