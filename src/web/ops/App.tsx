/**
 * Owns: the operator page as a whole: its tabs, what the address shows, when things were read, and the warning while they cannot be.
 */
import { type ReactNode, useMemo, useState } from 'react';
import { Actions } from './Actions.tsx';
import { Actors } from './Actors.tsx';
import { TABS, type Tab, useAddress } from './address.ts';
import { Link } from './Link.tsx';
import { Overview } from './Overview.tsx';
import { Turns } from './Turns.tsx';
import { TurnView } from './TurnView.tsx';
import { Usage } from './Usage.tsx';
import { REFRESH_MS, ReadContext, type ReadState } from './use-read.ts';
import type { ViewProps } from './view.ts';

const TITLES: Readonly<Record<Tab, string>> = {
  overview: 'Overview',
  turns: 'Turns',
  actors: 'Actors',
  usage: 'Usage',
  actions: 'Actions',
};
const VIEWS: Readonly<Record<Tab, (props: ViewProps) => ReactNode>> = {
  overview: Overview,
  turns: Turns,
  actors: Actors,
  usage: Usage,
  actions: Actions,
};

const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** Around each view: when it was read, and how that went. */
function Frame({ View, address, go }: Pick<ViewProps, 'address' | 'go'> & { readonly View: (props: ViewProps) => ReactNode }) {
  const [paused, setPaused] = useState(false);
  const [formOpen, hold] = useState(false);
  const [turn, setTurn] = useState(0);
  const [{ at, error }, report] = useState<ReadState>({ at: null, error: null });
  const controls = useMemo(() => ({ held: paused || formOpen, turn, report }), [paused, formOpen, turn]);
  return (
    <>
      <p className="read-at note">
        <span>
          {at === null ? 'Reading …' : `Read at ${CLOCK.format(at)}${paused || formOpen ? '' : `, again each ${REFRESH_MS / 1_000} s`}`}
        </span>
        <button type="button" className="button small" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          Hold
        </button>
      </p>
      <div role="alert">{error !== null && <p className="banner alarm">{error}</p>}</div>
      <ReadContext value={controls}>
        <View address={address} go={go} hold={hold} done={() => setTurn((n) => n + 1)} />
      </ReadContext>
    </>
  );
}

export function App() {
  const [address, go] = useAddress();
  const tab = TABS.find((one) => one === address['tab']) ?? 'overview';
  const View = tab === 'turns' && address['id'] ? TurnView : VIEWS[tab];
  return (
    <>
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <h1>Heph operations</h1>
        <nav aria-label="Views">
          {TABS.map((one) => (
            <Link key={one} to={{ tab: one }} go={go} current={one === tab}>
              {TITLES[one]}
            </Link>
          ))}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <Frame key={`${tab} ${address['id'] ?? ''}`} View={View} address={address} go={go} />
      </main>
    </>
  );
}
