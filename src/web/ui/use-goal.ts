/**
 * Owns: going to one message: it is loaded, brought into sight, focused and marked, or the person is told that it cannot be.
 */
import { useEffect, useLayoutEffect, useState, useSyncExternalStore } from 'react';
import type { TimelineItem } from '../store/timeline.ts';
import { usePage } from './context.ts';
import { useThreadId } from './conversation.ts';
import type { Goal } from './navigation.ts';
import type { Follow } from './use-follow.ts';

export interface Found {
  /** The item that was gone to; null: none. */
  foundId: string | null;
  news: 'going' | 'lost' | null;
}

export function useGoal(items: readonly TimelineItem[], { content, show }: Follow): Found {
  const { controller, navigation } = usePage();
  const threadId = useThreadId();
  const wanted = useSyncExternalStore(navigation.goal.subscribe, navigation.goal.get);
  const goal = wanted !== null && wanted.threadId === threadId ? wanted : null;
  const [reached, setReached] = useState<{ goal: Goal; there: boolean } | null>(null);
  useEffect(() => {
    if (goal === null) return;
    const leaving = new AbortController();
    void controller.opener.reveal(threadId, goal.entryId, leaving.signal).then((there) => {
      if (!leaving.signal.aborted) setReached({ goal, there });
    });
    return () => leaving.abort();
  }, [controller, threadId, goal]);
  const end = reached !== null && reached.goal === goal ? reached : null;
  const foundId = end?.there === true ? (items.find(({ entryId }) => entryId === end.goal.entryId)?.id ?? null) : null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same message may be gone to again.
  useLayoutEffect(() => {
    const message = foundId === null ? null : content.current?.querySelector(`[data-message-id="${CSS.escape(foundId)}"]`);
    if (!(message instanceof HTMLElement)) return;
    show(message);
    message.focus({ preventScroll: true });
  }, [foundId, end, content, show]);
  if (goal === null) return { foundId: null, news: null };
  if (end === null) return { foundId: null, news: 'going' };
  return { foundId, news: end.there ? null : 'lost' };
}
