/**
 * Owns: reading: what is new, where the mark of the first new answer stands, opening the page there, and moving the read marker
 * when the person has reached the end of the conversation.
 * Does not own: the rules (store/unread.ts).
 */
import { useEffect, useLayoutEffect, useMemo, useState } from 'react';
import type { TimelineItem } from '../store/timeline.ts';
import { isAfter, markedItem, nextVisit, unreadIn, type Visit } from '../store/unread.ts';
import { useChat } from './context.ts';
import { useConversationState, useReadMarker } from './conversation.ts';
import type { Follow } from './use-follow.ts';
import { useLooking } from './use-looking.ts';

export interface Reading {
  /** How many answers are new. */
  unread: number;
  /** The item above which the mark stands. */
  markId: string | null;
}

/** The class of the mark, by which the page scrolls to it. */
export const MARK_CLASS = 'unread-mark';

export function useReading(items: readonly TimelineItem[], { atEnd, show, content }: Follow): Reading {
  const { lastReadAt, mark: markRead } = useReadMarker();
  const ready = useConversationState() === 'ready';
  const syncing = useChat((state) => state.sync !== null);
  const looking = useLooking();
  const unread = useMemo(() => unreadIn(items, lastReadAt), [items, lastReadAt]);
  const [opened, setOpened] = useState(false);
  const [visit, setVisit] = useState<Visit | null>(null);
  const reading = opened && looking && atEnd;
  const next = ready ? nextVisit(visit, unread, { reading, lastReadAt }) : visit;
  if (next !== visit) setVisit(next);
  const markId = useMemo(() => markedItem(items, next), [items, next]);
  useLayoutEffect(() => {
    if (!ready || opened) return;
    const mark = content.current?.getElementsByClassName(MARK_CLASS)[0];
    if (mark !== undefined) show(mark);
    setOpened(true);
  }, [ready, opened, content, show]);
  const { newestAt } = unread;
  useEffect(() => {
    if (reading && !syncing && newestAt !== null && isAfter(newestAt, lastReadAt)) markRead(newestAt);
  }, [markRead, reading, syncing, newestAt, lastReadAt]);
  return { unread: unread.count, markId };
}
