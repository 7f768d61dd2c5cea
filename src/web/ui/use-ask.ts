/**
 * Owns: asking in the conversation in view, with the page beside the panel where there is one that the person sends along.
 */
import { useCallback } from 'react';
import { usePage } from './context.ts';
import { useThreadId } from './conversation.ts';

/** The same function while the conversation in view is the same. */
export function useAsk(): (text: string) => void {
  const { controller, host } = usePage();
  const threadId = useThreadId();
  return useCallback((text) => void controller.ask(text, threadId, host?.sent() ?? null), [controller, host, threadId]);
}
