/**
 * Owns: the gap between an older piece of the conversation, to which the person went, and its newest piece.
 */
import { useEffect } from 'react';
import { gapBefore } from '../store/islands.ts';
import type { TimelineItem } from '../store/timeline.ts';
import { useChat, usePage } from './context.ts';
import { useConversationId } from './conversation.ts';
import type { Follow } from './use-follow.ts';

/** The item above which messages are missing; null: none are. Who comes back to the end leaves the older piece. */
export function useGap(items: readonly TimelineItem[], { atEnd }: Follow): string | null {
  const { controller } = usePage();
  const conversationId = useConversationId();
  const entryId = useChat((state) => gapBefore(state, conversationId));
  // Only the way back to the end counts: a page that has just gone far up is at the end until it has scrolled.
  useEffect(() => {
    if (atEnd && conversationId !== null) controller.opener.leaveIsland(conversationId);
  }, [controller, conversationId, atEnd]);
  return entryId === null ? null : (items.find((item) => item.entryId === entryId)?.id ?? null);
}
