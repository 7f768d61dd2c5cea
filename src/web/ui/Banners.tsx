/**
 * Owns: what is said above the conversation: the connection, the demo model, the server's warnings.
 * A warning can be put away, but it is back with the next load of the page.
 */
import { useState } from 'react';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { AlertIcon, CloseIcon } from './icons.tsx';
import { SignInAgain } from './SignInAgain.tsx';
import { type ConnectionNews, useConnection } from './use-connection.ts';

const texts: Record<Exclude<ConnectionNews, 'fine'>, string> = {
  connecting: t.banner.connecting,
  reconnecting: t.banner.reconnecting,
  offline: t.banner.offline,
  'signed-out': t.banner.signedOut,
  'no-access': t.banner.noAccess,
  outdated: t.banner.outdated,
};

function ConnectionBanner() {
  const news = useConnection();
  const final = news === 'signed-out' || news === 'no-access' || news === 'outdated';
  return (
    <div role="status">
      {news !== 'fine' && (
        <div className={`banner ${final ? 'danger' : 'info'}`}>
          {!final && news !== 'offline' ? <span className="spinner" aria-hidden="true" /> : <AlertIcon />}
          <p>{texts[news]}</p>
          {news === 'signed-out' && <SignInAgain />}
          {news === 'outdated' && (
            <button type="button" className="button small" onClick={() => location.reload()}>
              {t.reload}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Warnings() {
  const { session } = usePage();
  const [dismissed, setDismissed] = useState<readonly string[]>([]);
  return session.warnings
    .filter((warning) => !dismissed.includes(warning))
    .map((warning) => (
      <div key={warning} className="banner warning">
        <AlertIcon />
        <p dir="auto">{warning}</p>
        <button
          type="button"
          className="button quiet icon-only small"
          aria-label={t.dismiss}
          title={t.dismiss}
          onClick={() => setDismissed([...dismissed, warning])}
        >
          <CloseIcon />
        </button>
      </div>
    ));
}

export function Banners() {
  const { session } = usePage();
  return (
    <section aria-label={t.notices}>
      <ConnectionBanner />
      {session.demoModel && (
        <div className="banner demo">
          <p>
            <strong>{t.demo.label}:</strong> {t.demo.text}
          </p>
        </div>
      )}
      <Warnings />
    </section>
  );
}
