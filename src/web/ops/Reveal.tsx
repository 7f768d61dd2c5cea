/** The words of one entry, for an admin who says why. They stay on the page until they are hidden or the view is left, and nowhere else. */
import { useState } from 'react';
import type { RevealedEntry } from '../../contract/operator-batch.ts';
import { ActionForm } from './ActionForm.tsx';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

export interface RevealProps extends Pick<ViewProps, 'done' | 'hold'> {
  readonly entryId: string;
  readonly close: () => void;
}

export function Reveal({ entryId, close, done, hold }: RevealProps) {
  const [shown, setShown] = useState<RevealedEntry['entry'] | null>(null);
  const tell = (answer: unknown) => {
    setShown((answer as RevealedEntry).entry);
    return t('The log says that you read it, and why.');
  };
  return (
    <section className="reveal" aria-label={t('Words of an entry')}>
      <p className="note">
        {t('Entry')} {entryId}
      </p>
      {shown === null ? null : (
        <>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
          <section className="revealed" aria-label={t('The words')} tabIndex={0}>
            {shown.text ?? shown.payload ?? ''}
          </section>
          {shown.cut && <p className="note">{t('It is longer than what is shown.')}</p>}
        </>
      )}
      <ActionForm label={t('Show the words')} path={`entries/${entryId}/reveal`} needs="admin" done={done} hold={hold} tell={tell} />
      <button type="button" className="button quiet" onClick={close}>
        {t('Hide')}
      </button>
    </section>
  );
}

export interface RevealLinkProps {
  readonly entryId: string;
  readonly seq: string;
  readonly open: (entryId: string) => void;
}

/** Opens the form for one entry of a list. */
export function RevealLink({ entryId, seq, open }: RevealLinkProps) {
  return (
    <button type="button" className="button small" aria-label={t('Reveal entry {n}', { n: seq })} onClick={() => open(entryId)}>
      {t('Reveal')}
    </button>
  );
}
