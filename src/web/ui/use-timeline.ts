/**
 * Owns: the items of the conversation in view for React: unchanged ones keep their identity, so that only changed messages are drawn again.
 */
import { useCallback, useRef, useState } from 'react';
import { keepUnchanged } from '../store/keep-unchanged.ts';
import { rememberedTimeline, type TimelineItem } from '../store/timeline.ts';
import { useChat } from './context.ts';
import { useThreadId } from './conversation.ts';

export function useTimeline(): readonly TimelineItem[] {
  const kept = useRef<readonly TimelineItem[]>([]);
  const threadId = useThreadId();
  const [timeline] = useState(rememberedTimeline);
  return useChat(
    useCallback(
      (state) => {
        kept.current = keepUnchanged(kept.current, timeline(state, threadId ?? state.mainId));
        return kept.current;
      },
      [timeline, threadId],
    ),
  );
}
