/**
 * Owns: what the operator of this page may do, so that it offers nothing else. The server asks again with each request.
 */
import { createContext, useContext } from 'react';
import { mayAs, type OperatorMe, type OpsRole } from '../../contract/operators.ts';

export const MeContext = createContext<OperatorMe | null>(null);

/** True when whoever looks at the page has at least this role. */
export function useMay(needed: OpsRole): boolean {
  const me = useContext(MeContext);
  return me !== null && mayAs(me.role, needed);
}
