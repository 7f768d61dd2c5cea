/**
 * Owns: the operator page as a whole: its tabs, what the address shows, when things were read, and the warning while they cannot be.
 */
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import type { OperatorMe } from '../../contract/operators.ts';
import { Actions } from './Actions.tsx';
import { Actors } from './Actors.tsx';
import { TABS, type Tab, useAddress } from './address.ts';
import { Conversation } from './Conversation.tsx';
import { Link } from './Link.tsx';
import { Outbox } from './Outbox.tsx';
import { Overview } from './Overview.tsx';
import { MeContext } from './role.ts';
import { Sandboxes } from './Sandboxes.tsx';
import { SignIn } from './SignIn.tsx';
import { Turns } from './Turns.tsx';
import { TurnView } from './TurnView.tsx';
import { Usage } from './Usage.tsx';
import { REFRESH_MS, ReadContext, type ReadState } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { hasToken, Refusal, request, setToken } from './wire.ts';
import { locale, t } from './words.ts';

const TITLES: Readonly<Record<Tab, string>> = {
  overview: t('Overview'),
  turns: t('Turns'),
  outbox: t('Outbox'),
  sandboxes: t('Sandboxes'),
  actors: t('Actors'),
  usage: t('Usage'),
  actions: t('Actions'),
};
const VIEWS: Readonly<Record<Tab, (props: ViewProps) => ReactNode>> = {
  overview: Overview,
  turns: Turns,
  outbox: Outbox,
  sandboxes: Sandboxes,
  actors: Actors,
  usage: Usage,
  actions: Actions,
};

const CLOCK = new Intl.DateTimeFormat(locale, { timeStyle: 'medium' });

/** Around each view: when it was read, and how that went. */
interface FrameProps extends Pick<ViewProps, 'address' | 'go'> {
  readonly View: (props: ViewProps) => ReactNode;
  /** The server does not know any more who reads. */
  readonly forgotten: () => void;
}

function Frame({ View, address, go, forgotten }: FrameProps) {
  const [paused, setPaused] = useState(false);
  const [formOpen, hold] = useState(false);
  const [turn, setTurn] = useState(0);
  const [{ at, error, unknown = false }, report] = useState<ReadState>({ at: null, error: null });
  useEffect(() => {
    if (unknown) forgotten();
  }, [unknown, forgotten]);
  const controls = useMemo(() => ({ held: paused || formOpen, turn, report }), [paused, formOpen, turn]);
  return (
    <>
      <p className="read-at note">
        <span>
          {at === null
            ? t('Reading …')
            : t('Read at {time}', { time: CLOCK.format(at) }) +
              (paused || formOpen ? '' : t(', again each {n} s', { n: REFRESH_MS / 1_000 }))}
        </span>
        <button type="button" className="button small" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {t('Hold')}
        </button>
      </p>
      <div role="alert">{error !== null && <p className="banner alarm">{error}</p>}</div>
      <ReadContext value={controls}>
        <View address={address} go={go} hold={hold} done={() => setTurn((n) => n + 1)} />
      </ReadContext>
    </>
  );
}

type Known = { readonly me: OperatorMe } | { readonly refusal: Refusal } | { readonly away: string } | null;

/** Who looks at the page, as the server says; asked again when it stops knowing. */
function useMe(): readonly [Known, () => void] {
  const [known, setKnown] = useState<Known>(null);
  const [asked, setAsked] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `asked` asks again
  useEffect(() => {
    let gone = false;
    request<OperatorMe>('me').then(
      (me) => !gone && setKnown({ me }),
      (error: Error) => !gone && setKnown(error instanceof Refusal && error.status < 500 ? { refusal: error } : { away: error.message }),
    );
    return () => {
      gone = true;
    };
  }, [asked]);
  return [known, useMemo(() => () => setAsked((n) => n + 1), [])];
}

function Who({ me, again }: { readonly me: OperatorMe; readonly again: () => void }) {
  const leave = () => {
    setToken(null);
    again();
  };
  const signOut = async () => {
    if (me.signOutUrl === null) return;
    await fetch(me.signOutUrl, { method: 'POST', headers: { accept: 'application/json' } }).catch(() => null);
    again();
  };
  return (
    <p className="who note">
      {me.name}, {me.role}{' '}
      {me.signOutUrl !== null && (
        <button type="button" className="button small" onClick={() => void signOut()}>
          {t('Sign out')}
        </button>
      )}
      {hasToken() && (
        <button type="button" className="button small" onClick={leave}>
          {t('Forget the token')}
        </button>
      )}
    </p>
  );
}

export function App() {
  const [address, go] = useAddress();
  const [known, again] = useMe();
  const tab = TABS.find((one) => one === address['tab']) ?? 'overview';
  const View = viewOf(tab, address['id']);
  const me = known !== null && 'me' in known ? known.me : null;
  return (
    <MeContext value={me}>
      <a className="skip-link" href="#main">
        {t('Skip to the content')}
      </a>
      <header className="top">
        <h1>{t('Heph operations')}</h1>
        <nav aria-label={t('Views')}>
          {TABS.map((one) => (
            <Link key={one} to={{ tab: one }} go={go} current={one === tab}>
              {TITLES[one]}
            </Link>
          ))}
        </nav>
        {me && <Who me={me} again={again} />}
      </header>
      <main id="main" tabIndex={-1}>
        {known !== null && 'refusal' in known && <SignIn refusal={known.refusal} again={again} />}
        {known !== null && 'away' in known && <Away text={known.away} again={again} />}
        {me && <Frame key={`${tab} ${address['id'] ?? ''}`} View={View} address={address} go={go} forgotten={again} />}
      </main>
    </MeContext>
  );
}

function Away({ text, again }: { readonly text: string; readonly again: () => void }) {
  return (
    <div role="alert">
      <p className="banner alarm">{text}</p>
      <button type="button" className="button" onClick={again}>
        {t('Try again')}
      </button>
    </div>
  );
}

function viewOf(tab: Tab, id: string | undefined): (props: ViewProps) => ReactNode {
  if (id && tab === 'turns') return TurnView;
  if (id && tab === 'actors') return Conversation;
  return VIEWS[tab];
}
