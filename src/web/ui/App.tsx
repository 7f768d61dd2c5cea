/**
 * Owns: the way from an empty page to a chat: reads the session, tries again while the server does not answer.
 */
import { useEffect, useState } from 'react';
import type { Session } from '../../contract/web.ts';
import { pause } from '../../kernel/clock.ts';
import { readSession } from '../net/api.ts';
import { browserClock } from '../net/browser-clock.ts';
import { backoffMs } from '../net/event-stream.ts';
import { t } from '../strings.ts';
import { ChatPage } from './ChatPage.tsx';
import { PageMessage } from './PageMessage.tsx';

type Start = { kind: 'connecting' } | { kind: 'unreachable' } | { kind: 'refused'; text: string } | { kind: 'ready'; session: Session };

async function open(show: (start: Start) => void, signal: AbortSignal): Promise<void> {
  for (let failures = 1; !signal.aborted; failures++) {
    const result = await readSession();
    if (signal.aborted) return;
    if (result.ok) return show({ kind: 'ready', session: result.value });
    const { failure } = result;
    if (failure.kind === 'problem' && failure.problem.retry === 'never') return show({ kind: 'refused', text: t.failure(failure) });
    if (failures > 1) show({ kind: 'unreachable' });
    await pause(browserClock, backoffMs(failures, Math.random()), signal);
  }
}

export function App() {
  const [start, setStart] = useState<Start>({ kind: 'connecting' });
  useEffect(() => {
    const leaving = new AbortController();
    void open(setStart, leaving.signal);
    return () => leaving.abort();
  }, []);
  switch (start.kind) {
    case 'connecting':
      return <PageMessage text={t.start.connecting} busy />;
    case 'unreachable':
      return <PageMessage text={t.start.unreachable} busy />;
    case 'refused':
      return <PageMessage text={start.text} reload />;
    case 'ready':
      return <ChatPage session={start.session} />;
  }
}
