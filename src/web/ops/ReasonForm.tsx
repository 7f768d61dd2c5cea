/**
 * Owns: the form before a deed: what it would do, why it is to be done, and what else must be said. It has the focus while it is there.
 */
import { type FormEvent, type ReactNode, useEffect, useId, useRef } from 'react';
import { REASON_MAX_CHARS } from '../../contract/operators.ts';
import { t } from './words.ts';

export interface ReasonFormProps {
  readonly label: string;
  readonly effect: ReactNode;
  readonly busy: boolean;
  readonly close: () => void;
  readonly confirm: (reason: string, form: FormData) => void;
  /** More fields. */
  readonly children?: ReactNode;
}

export function ReasonForm({ label, effect, busy, close, confirm, children }: ReasonFormProps) {
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  useEffect(() => field.current?.focus(), []);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const reason = field.current?.value.trim() ?? '';
    if (reason !== '') confirm(reason, new FormData(event.currentTarget));
  };
  return (
    <form
      className="action-form"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close();
      }}
    >
      <div>{effect}</div>
      {children}
      <label htmlFor={id}>{t('Why?')}</label>
      <input id={id} ref={field} required maxLength={REASON_MAX_CHARS} autoComplete="off" />
      <button type="submit" className="button primary" disabled={busy}>
        {label}
      </button>
      <button type="button" className="button quiet" onClick={close}>
        {t('Cancel')}
      </button>
    </form>
  );
}

/** While the form is open nothing is read, so that what it speaks of stays as it is; afterwards its opener has the focus again. */
export function useHeld(isOpen: boolean, hold: (held: boolean) => void) {
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    hold(true);
    return () => {
      hold(false);
      opener.current?.focus(); // it can take the focus only now that it is enabled again
    };
  }, [isOpen, hold]);
  return opener;
}
