/**
 * Owns: the steps of a turn as the database sees them, and who can be killed at each. The table that spec/failures/steps.spec.ts goes through.
 */
import type { Point } from './pg-wire.ts';

export interface TurnStep {
  /** What a person would say happens here. */
  readonly what: string;
  /** The prepared statement that is the step. */
  readonly statement: string;
  /** The question is the conversation's second, so that its sandbox waits already: its claim is folded into its submit. */
  readonly follows?: true;
  /** The answer is held back until the step has come: it happens while the model is silent. */
  readonly midway?: true;
}

export const TURN_STEPS: readonly TurnStep[] = [
  { what: 'the question is written', statement: 'ledger_submit' },
  { what: 'the question is written and starts at once', statement: 'ledger_submit', follows: true },
  { what: 'the turn is claimed', statement: 'ledger_claim' },
  { what: 'the sandbox reads its context', statement: 'ledger_note_call' },
  { what: 'a model call is opened', statement: 'gateway_open_call' },
  { what: 'a part of the answer is reported', statement: 'ledger_check_attempt', midway: true },
  { what: 'the lease is renewed', statement: 'ledger_renew', midway: true },
  { what: 'a model call is closed', statement: 'gateway_close_calls' },
  { what: 'the answer is stored', statement: 'ledger_end_turn' },
];

/** `connection`: nobody dies, the server only never hears (the reply of a COMMIT is lost). */
export type Victim = 'sandbox' | 'server' | 'postgres' | 'connection';

const VICTIMS: readonly Victim[] = ['server', 'sandbox', 'postgres', 'connection'];
export const POINTS: readonly Point[] = ['before', 'after'];

export interface Fault {
  readonly step: TurnStep;
  readonly point: Point;
  readonly victim: Victim;
}

/** Every step, both points, every victim; or each step and point once, with the victims in turn, so that each dies several times. */
export function faults(all: boolean): readonly Fault[] {
  const cells = TURN_STEPS.flatMap((step) => POINTS.map((point) => ({ step, point })));
  if (all) return cells.flatMap((cell) => VICTIMS.map((victim) => ({ ...cell, victim })));
  // A step's two points are 2 apart in the list of victims, and the list moves by one with each step.
  return cells.map((cell, n) => ({ ...cell, victim: VICTIMS[(Math.floor(n / 2) + (n % 2) * 2) % VICTIMS.length] as Victim }));
}
