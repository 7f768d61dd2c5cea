/**
 * Owns: what is different in the panel on another site's page: its header, its way to the sign-in, the page that goes along with a question.
 */
import { useSyncExternalStore } from 'react';
import type { HostLink } from '../embed/host-link.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { useThreadId } from './conversation.ts';
import { CloseIcon, FlameIcon, OutIcon, SearchIcon } from './icons.tsx';
import { ThreadList } from './ThreadList.tsx';

interface PanelHeaderProps {
  host: HostLink;
  openSearch(): void;
}

export function PanelHeader({ host, openSearch }: PanelHeaderProps) {
  const { session, navigation } = usePage();
  const threadId = useThreadId();
  return (
    <header className="header">
      <FlameIcon className="header-mark" />
      <h1 dir="auto">{session.assistantName}</h1>
      <span className="header-space" />
      <button type="button" className="button quiet icon-only" onClick={openSearch} aria-label={t.search.label} title={t.search.label}>
        <SearchIcon />
      </button>
      <ThreadList />
      <a
        className="button quiet icon-only"
        href={navigation.href(threadId)}
        target="_blank"
        rel="noopener"
        aria-label={t.panel.tab}
        title={t.panel.tab}
      >
        <OutIcon />
      </a>
      <button type="button" className="button quiet icon-only" onClick={host.close} aria-label={t.close} title={t.close}>
        <CloseIcon />
      </button>
    </header>
  );
}

interface PanelRefusedProps {
  text: string;
  link: { href: string; text: string } | null;
  onClose(): void;
}

/** Nothing of the sign-in may happen in a frame: it happens in another tab, and the panel looks again when the person is back. */
export function PanelRefused({ text, link, onClose }: PanelRefusedProps) {
  return (
    <main className="page-message">
      <FlameIcon className="page-message-mark" />
      <p role="status">{text}</p>
      {link !== null && (
        <a className="button primary" href={link.href} target="_blank" rel="noopener">
          {link.text}
        </a>
      )}
      <p className="panel-note">{t.panel.otherSite}</p>
      <a className="button" href="/" target="_blank" rel="noopener">
        {t.panel.tab}
      </a>
      <button type="button" className="button quiet" onClick={onClose}>
        {t.close}
      </button>
    </main>
  );
}

/** What goes along with the question: all of it is in sight before it is sent. */
export function PagePart({ host }: { host: HostLink }) {
  const page = useSyncExternalStore(host.page.subscribe, host.page.get);
  const wanted = useSyncExternalStore(host.wanted.subscribe, host.wanted.get);
  if (page === null) return null;
  return (
    <section className="page-part" aria-label={t.panel.page}>
      <label>
        <input type="checkbox" checked={wanted} onChange={(event) => host.want(event.target.checked)} />
        <span>{t.panel.send}</span>
      </label>
      {wanted && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll long words.
        <figure className="page-part-words" aria-label={t.panel.page} tabIndex={0}>
          <p dir="auto">{page.title}</p>
          <p className="page-part-url" dir="ltr">
            {page.url}
          </p>
          {page.selection !== undefined && <blockquote dir="auto">{page.selection}</blockquote>}
        </figure>
      )}
    </section>
  );
}
