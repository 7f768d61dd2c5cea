import { t } from '../strings.ts';
import { FlameIcon } from './icons.tsx';

/** One sentence in the middle of an otherwise empty page. */
export function PageMessage({ text, busy = false, reload = false }: { text: string; busy?: boolean; reload?: boolean }) {
  return (
    <main className="page-message" aria-busy={busy}>
      <FlameIcon className={busy ? 'page-message-mark breathing' : 'page-message-mark'} />
      <p role="status">{text}</p>
      {reload && (
        <button type="button" className="button" onClick={() => location.reload()}>
          {t.reload}
        </button>
      )}
    </main>
  );
}
