/**
 * Owns: what a person does when they are signed out in the middle: sign in, in this tab or in another one, and go on.
 */
import { useEffect, useState } from 'react';
import { readSession } from '../net/api.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { onReturn, rememberPlace, signInHref } from './sign-in.ts';

/** Where to sign in, once the server has said it. Whoever comes back to this page may have signed in elsewhere: then it goes on. */
function useSignInUrl(): string | null {
  const { session, controller } = usePage();
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    const look = async (returned: boolean) => {
      const result = await readSession(session.workspace.slug);
      if (!current) return;
      if (!result.ok) return setUrl(result.failure.kind === 'problem' ? (result.failure.problem.signInUrl ?? null) : null);
      // Somebody else: nothing of this page is theirs.
      if (result.value.account.id !== session.account.id) location.reload();
      else if (returned) controller.reconnect();
    };
    void look(false);
    const unlisten = onReturn(() => void look(true));
    return () => {
      current = false;
      unlisten();
    };
  }, [session, controller]);
  return url;
}

export function SignInAgain() {
  const page = usePage();
  const url = useSignInUrl();
  if (url === null) {
    return (
      <button type="button" className="button small" onClick={() => location.reload()}>
        {t.reload}
      </button>
    );
  }
  const elsewhere = page.host === null ? {} : { target: '_blank', rel: 'noopener' };
  return (
    <a className="button small" href={signInHref(url)} onClick={() => rememberPlace(page)} {...elsewhere}>
      {t.start.signIn}
    </a>
  );
}
