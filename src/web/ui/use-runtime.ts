/**
 * Owns: our store behind assistant-ui's primitives. The kit draws and holds the composer's text; what a message is stays with the store.
 * The kit's own "running" is never set: it means one answer at the end and a blocked composer, while here questions may be asked at any
 * time and answers may have waiting questions below them.
 */
import { type AppendMessage, type ThreadMessageLike, useExternalStoreRuntime } from '@assistant-ui/react';
import { useCallback, useMemo, useRef } from 'react';
import type { Part } from '../../contract/web.ts';
import type { ChatController } from '../chat/controller.ts';
import { keepUnchanged, type TimelineItem, timeline } from '../store/timeline.ts';
import { useChat } from './context.ts';

function toContent(part: Part): Exclude<ThreadMessageLike['content'], string>[number] {
  return part.type === 'text' ? part : { type: 'data', name: 'card', data: part };
}

function toMessage(item: TimelineItem): ThreadMessageLike {
  const common = { id: item.id, createdAt: new Date(item.at), metadata: { custom: { item } } };
  if (item.kind === 'question') return { ...common, role: 'user', content: item.text };
  const content = item.kind === 'failure' || item.parts.length === 0 ? item.text : item.parts.map(toContent);
  const live = item.kind === 'answer' && item.phase === 'live';
  return { ...common, role: 'assistant', content, status: live ? { type: 'running' } : { type: 'complete', reason: 'stop' } };
}

function wordsOf(message: AppendMessage): string {
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

/** The items of the main conversation; unchanged ones keep their identity from one state to the next. */
export function useTimeline(): readonly TimelineItem[] {
  const kept = useRef<readonly TimelineItem[]>([]);
  return useChat(
    useCallback((state) => {
      kept.current = keepUnchanged(kept.current, timeline(state, state.mainId));
      return kept.current;
    }, []),
  );
}

export function useHephRuntime(controller: ChatController, items: readonly TimelineItem[]) {
  const adapter = useMemo(
    () => ({
      messages: items,
      convertMessage: toMessage,
      isRunning: false,
      async onNew(message: AppendMessage) {
        void controller.ask(wordsOf(message));
      },
    }),
    [controller, items],
  );
  return useExternalStoreRuntime(adapter);
}
