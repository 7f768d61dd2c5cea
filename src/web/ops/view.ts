/**
 * Owns: what every view of the operator page gets. What it shows it reads itself (use-read.ts).
 */
import type { Address } from './address.ts';

export interface ViewProps {
  readonly address: Address;
  readonly go: (to: Address) => void;
  /** Something was done: read again now. */
  readonly done: () => void;
  /** While a form is open nothing is read, so that what it speaks of stays as it is. */
  readonly hold: (held: boolean) => void;
}
