/**
 * Owns: what assistant-ui knows of this chat: the composer and what happens to a sent text.
 * The transcript stays with our store (store/timeline.ts) and our own list (Thread.tsx). Inside the kit each message depends on its place
 * in the list, so one older page would draw every message again, and its "running" means one answer at the end and a blocked composer,
 * while here questions may be asked at any time and wait below the answer.
 */
import { type AppendMessage, type ExternalStoreAdapter, useExternalStoreRuntime } from '@assistant-ui/react';
import { useMemo } from 'react';

function wordsOf(message: AppendMessage): string {
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

/** The adapter keeps its identity while `ask` does: the kit takes a new one for a new state. */
export function useHephRuntime(ask: (text: string) => void) {
  const adapter = useMemo<ExternalStoreAdapter>(
    () => ({
      messages: [],
      isRunning: false,
      async onNew(message: AppendMessage) {
        ask(wordsOf(message));
      },
    }),
    [ask],
  );
  return useExternalStoreRuntime(adapter);
}
