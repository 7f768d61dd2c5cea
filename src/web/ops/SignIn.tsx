/** Who is the operator? Shown instead of the page while the server does not know: a link to the sign-in, and a field for a token. */
import { type FormEvent, useId, useRef } from 'react';
import { hasToken, type Refusal, setToken } from './wire.ts';
import { t } from './words.ts';

export interface SignInProps {
  readonly refusal: Refusal;
  /** Ask the server again. */
  readonly again: () => void;
}

export function SignIn({ refusal, again }: SignInProps) {
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? '';
    if (token === '') return;
    setToken(token);
    again();
  };
  const forget = () => {
    setToken(null);
    again();
  };
  return (
    <section className="sign-in" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{t('Say who you are')}</h2>
      <p role="alert">{refusal.message}</p>
      {refusal.signInUrl !== null && (
        <p>
          <a className="button primary" href={refusal.signInUrl}>
            {t('Sign in')}
          </a>
        </p>
      )}
      <form className="action-form" onSubmit={submit}>
        <label htmlFor={id}>{t('Token of a role (kept in this tab only)')}</label>
        <input id={id} ref={field} type="password" autoComplete="off" spellCheck={false} />
        <button type="submit" className="button">
          {t('Use the token')}
        </button>
        {hasToken() && (
          <button type="button" className="button quiet" onClick={forget}>
            {t('Forget the token')}
          </button>
        )}
      </form>
    </section>
  );
}
