/**
 * Owns: the person's part of the menu: who they are, their workspaces, whether an AI model may work for them, signing out.
 */
import { useState, useSyncExternalStore } from 'react';
import { hrefOf } from '../route.ts';
import { t } from '../strings.ts';
import { chooseAi, leave } from './account.ts';
import { usePage } from './context.ts';
import { CheckIcon } from './icons.tsx';
import { useReadOnly } from './use-connection.ts';

function AiSwitch() {
  const page = usePage();
  const readOnly = useReadOnly();
  const allowed = useSyncExternalStore(page.aiAllowed.subscribe, page.aiAllowed.get);
  const [problem, setProblem] = useState('');
  return (
    <div className="menu-switch">
      <label>
        <input
          type="checkbox"
          aria-describedby="ai-meaning"
          checked={allowed}
          disabled={readOnly}
          onChange={(event) => void chooseAi(page, event.target.checked).then(setProblem)}
        />
        <span>{t.account.ai}</span>
      </label>
      <p id="ai-meaning">{t.account.aiMeaning}</p>
      <p role="status" className="menu-problem">
        {problem}
      </p>
    </div>
  );
}

function Workspaces() {
  const { me, session } = usePage();
  const workspaces = useSyncExternalStore(me.subscribe, me.get)?.workspaces ?? [];
  if (workspaces.length < 2) return null;
  return (
    <ul className="menu-list" aria-label={t.account.workspaces}>
      {workspaces.map(({ slug, name }) => (
        <li key={slug}>
          <a
            className="menu-item"
            href={hrefOf({ workspace: slug, threadId: null })}
            {...(slug === session.workspace.slug ? { 'aria-current': 'page' as const } : {})}
          >
            <bdi>{name}</bdi>
            {slug === session.workspace.slug && <CheckIcon />}
          </a>
        </li>
      ))}
    </ul>
  );
}

export function Account() {
  const page = usePage();
  const me = useSyncExternalStore(page.me.subscribe, page.me.get);
  const signOutUrl = me?.signOutUrl ?? null;
  return (
    <section aria-label={t.account.label}>
      <p className="menu-name" dir="auto">
        {page.session.account.displayName}
        <span className="menu-where"> · {page.session.workspace.name}</span>
      </p>
      <Workspaces />
      <AiSwitch />
      {signOutUrl !== null && (
        <button type="button" className="menu-item" onClick={() => void leave(page, signOutUrl)}>
          {t.account.signOut}
        </button>
      )}
    </section>
  );
}
