/**
 * Owns: the address of a view: what is shown stands in the query, so that a link, a reload and the back button show the same.
 */
import { useEffect, useState } from 'react';

export const TABS = ['overview', 'turns', 'outbox', 'sandboxes', 'actors', 'usage', 'actions'] as const;
export type Tab = (typeof TABS)[number];
/** Members of the query; an empty one is left out. */
export type Address = Readonly<Record<string, string>>;

export function hrefOf(address: Address): string {
  const given = Object.entries(address).filter(([, value]) => value !== '');
  return `/ops?${new URLSearchParams(given)}`;
}

function read(): Address {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/** The address now, and a way to go to another. */
export function useAddress(): readonly [Address, (to: Address) => void] {
  const [address, setAddress] = useState(read);
  useEffect(() => {
    const moved = () => setAddress(read());
    addEventListener('popstate', moved);
    return () => removeEventListener('popstate', moved);
  }, []);
  return [
    address,
    (to) => {
      history.pushState(null, '', hrefOf(to));
      setAddress(read());
      scrollTo(0, 0);
    },
  ];
}
