/**
 * Owns: the title of the tab: says that an answer is being written, and that one came while nobody looked.
 */
import { useEffect, useState } from 'react';
import { runningTurn } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { useChat, usePage } from './context.ts';

export function usePageTitle(): void {
  const { session } = usePage();
  const answering = useChat((state) => runningTurn(state, state.mainId) !== null);
  const [unseen, setUnseen] = useState(false);
  useEffect(() => {
    if (!answering) return;
    setUnseen(false);
    return () => setUnseen(document.visibilityState === 'hidden');
  }, [answering]);
  useEffect(() => {
    const seen = () => document.visibilityState === 'visible' && setUnseen(false);
    document.addEventListener('visibilitychange', seen);
    return () => document.removeEventListener('visibilitychange', seen);
  }, []);
  const app = `${session.assistantName} · ${session.workspace.name}`;
  useEffect(() => {
    document.title = t.title(app, answering ? 'answering' : unseen ? 'answered' : 'idle');
  }, [app, answering, unseen]);
}
