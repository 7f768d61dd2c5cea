import { t } from '../strings.ts';
import { FlameIcon } from './icons.tsx';

interface PageMessageProps {
  text: string;
  busy?: boolean;
  reload?: boolean;
  /** Where the person can go from here. */
  link?: { href: string; text: string } | null;
}

/** One sentence in the middle of an otherwise empty page. */
export function PageMessage({ text, busy = false, reload = false, link = null }: PageMessageProps) {
  return (
    <main className="page-message" aria-busy={busy}>
      <FlameIcon className={busy ? 'page-message-mark breathing' : 'page-message-mark'} />
      <p role="status">{text}</p>
      {link !== null && (
        <a className="button primary" href={link.href}>
          {link.text}
        </a>
      )}
      {reload && (
        <button type="button" className="button" onClick={() => location.reload()}>
          {t.reload}
        </button>
      )}
    </main>
  );
}
