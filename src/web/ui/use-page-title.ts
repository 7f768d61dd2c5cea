/**
 * Owns: the title of the tab: how many answers are new, else whether one is being written.
 */
import { useEffect } from 'react';
import { runningTurn } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { useChat, usePage } from './context.ts';
import { useThreadId } from './conversation.ts';

export function usePageTitle(unread: number): void {
  const { session } = usePage();
  const threadId = useThreadId();
  const answering = useChat((state) => runningTurn(state, threadId ?? state.mainId) !== null);
  const place = threadId === null ? '' : `${t.thread.one} · `;
  const title = t.title(`${place}${session.assistantName} · ${session.workspace.name}`, { answering, unread });
  useEffect(() => {
    document.title = title;
  }, [title]);
}
