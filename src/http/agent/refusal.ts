/** Owns: the 409s of calls whose attempt has lost its run or was stopped. */
import type { Refusal } from '../../../actors/index.ts';
import { RuntimeFault } from '../../kernel/faults.ts';

export function refusalFault(refusal: Refusal): RuntimeFault {
  if (refusal.kind === 'lost') {
    return new RuntimeFault('MENTOR_LEASE_LOST', 'This attempt does not hold its run any more. Drop it and pull the next run.');
  }
  const { stop } = refusal;
  return new RuntimeFault('MENTOR_TURN_STOPPED', 'The turn was stopped. End it with what was written so far.', { extra: { stop } });
}
