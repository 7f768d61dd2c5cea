/**
 * Owns: a link to another view of the operator page: a plain link that goes there without loading the page again.
 */
import type { ReactNode } from 'react';
import { type Address, hrefOf } from './address.ts';

export interface LinkProps {
  readonly to: Address;
  readonly go: (to: Address) => void;
  readonly current?: boolean;
  readonly children: ReactNode;
}

export function Link({ to, go, current = false, children }: LinkProps) {
  return (
    <a
      href={hrefOf(to)}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}
