/**
 * Owns: the way from an empty page to a chat: reads the session, tries again while the server does not answer.
 */
import { useEffect, useRef, useState } from 'react';
import type { Problem } from '../../contract/common.ts';
import type { Session } from '../../contract/web.ts';
import { pause } from '../../kernel/clock.ts';
import type { HostLink } from '../embed/host-link.ts';
import { readMe, readSession } from '../net/api.ts';
import { browserClock } from '../net/browser-clock.ts';
import { backoffMs } from '../net/event-stream.ts';
import { hrefOf } from '../route.ts';
import { t } from '../strings.ts';
import { ChatPage } from './ChatPage.tsx';
import { Navigation } from './navigation.ts';
import { PageMessage } from './PageMessage.tsx';
import { PanelRefused } from './Panel.tsx';
import { onReturn, signInHref } from './sign-in.ts';

interface Link {
  href: string;
  text: string;
}
type Start =
  | { kind: 'connecting' }
  | { kind: 'unreachable' }
  | { kind: 'refused'; text: string; link: Link | null }
  | { kind: 'ready'; session: Session };

/** The page that explains it to somebody who is signed in and belongs to no workspace. It is there where people sign in. */
const noAccessPath = '/auth/no-access';

/** Where a refused person can go from here. */
async function wayOut({ code, signInUrl }: Problem, slug: string | null): Promise<Link | null> {
  if (signInUrl !== undefined) {
    return { href: signInHref(signInUrl), text: t.start.signIn };
  }
  if (slug !== null && code === 'WORKSPACE_NOT_FOUND') return { href: hrefOf({ workspace: null, threadId: null }), text: t.start.home };
  if (code !== 'FORBIDDEN') return null;
  const me = await readMe();
  return me.ok && me.value.signOutUrl !== null ? { href: noAccessPath, text: t.start.noWorkspace } : null;
}

async function refused(problem: Problem, slug: string | null): Promise<Start> {
  const link = await wayOut(problem, slug);
  const text = problem.code === 'SIGNED_OUT' ? t.start.signedOut : t.failure({ kind: 'problem', problem });
  return { kind: 'refused', text, link };
}

async function open(slug: string | null, show: (start: Start) => void, signal: AbortSignal): Promise<void> {
  for (let failures = 1; !signal.aborted; failures++) {
    const result = await readSession(slug);
    if (signal.aborted) return;
    if (result.ok) return show({ kind: 'ready', session: result.value });
    const { failure } = result;
    if (failure.kind === 'problem' && failure.problem.retry === 'never') return show(await refused(failure.problem, slug));
    if (failures > 1) show({ kind: 'unreachable' });
    await pause(browserClock, backoffMs(failures, Math.random()), signal);
  }
}

/** In a panel a person signs in in another tab: when they are back, it is tried again. */
function useReturn(waits: boolean, again: () => void): void {
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => (waits ? onReturn(() => latest.current()) : undefined), [waits]);
}

/** `host`: the page of another site that shows this one as its panel; null: this is a page of its own. */
export function App({ host }: { host: HostLink | null }) {
  const [navigation] = useState(() => new Navigation(host === null ? 'page' : 'panel'));
  const [start, setStart] = useState<Start>({ kind: 'connecting' });
  const [attempt, setAttempt] = useState(0);
  // Each attempt opens anew.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above.
  useEffect(() => {
    const leaving = new AbortController();
    void open(navigation.route.get().workspace, setStart, leaving.signal);
    return () => leaving.abort();
  }, [navigation, attempt]);
  useReturn(host !== null && start.kind === 'refused', () => setAttempt((n) => n + 1));
  switch (start.kind) {
    case 'connecting':
      return <PageMessage text={t.start.connecting} busy />;
    case 'unreachable':
      return <PageMessage text={t.start.unreachable} busy />;
    case 'refused':
      if (host !== null) return <PanelRefused text={start.text} link={start.link} onClose={host.close} />;
      return <PageMessage text={start.text} link={start.link} reload={start.link === null} />;
    case 'ready':
      return <ChatPage session={start.session} navigation={navigation} host={host} />;
  }
}
