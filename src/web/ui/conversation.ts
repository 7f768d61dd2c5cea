/**
 * Owns: which conversation a part of the page belongs to, and the threads that there are.
 */
import { createContext, useCallback, useContext, useRef } from 'react';
import { same } from '../store/keep-unchanged.ts';
import { type ThreadSummary, threadReadAt, threadsOf } from '../store/threads.ts';
import { isAfter } from '../store/unread.ts';
import { useChat, usePage } from './context.ts';

/** The thread in view; null: the main conversation. */
export const ThreadContext = createContext<string | null>(null);

export function useThreadId(): string | null {
  return useContext(ThreadContext);
}

/** The id of the conversation in view; null before a person's first question. */
export function useConversationId(): string | null {
  const threadId = useThreadId();
  const mainId = useChat((state) => state.mainId);
  return threadId ?? mainId;
}

/** `loading`: its newest page is not here yet. */
export function useConversationState(): 'loading' | 'ready' | 'failed' | 'gone' {
  const threadId = useThreadId();
  return useChat(({ ready, ranges }) => {
    if (!ready) return 'loading';
    if (threadId === null) return 'ready';
    const range = ranges[threadId];
    if (range === undefined || range.opening === 'asked') return 'loading';
    return range.opening ?? 'ready';
  });
}

/** Up to when the account has read the conversation in view, on whichever device, and a way to say so. */
export function useReadMarker(): { lastReadAt: string | null; mark(upTo: string): void } {
  const { controller } = usePage();
  const threadId = useThreadId();
  const lastReadAt = useChat((state) => {
    if (threadId !== null) return threadReadAt(state, threadId);
    return state.mainId === null ? null : (state.conversations[state.mainId]?.lastReadAt ?? null);
  });
  const mark = useCallback((upTo: string) => void controller.markRead(upTo, threadId), [controller, threadId]);
  return { lastReadAt, mark };
}

/** The main conversation has a new answer while a thread is in view. */
export function useMainNews(): boolean {
  const inThread = useThreadId() !== null;
  return useChat((state) => {
    const main = state.mainId === null ? undefined : state.conversations[state.mainId];
    const answeredAt = main?.lastAnswerAt ?? null;
    return inThread && answeredAt !== null && isAfter(answeredAt, main?.lastReadAt ?? null);
  });
}

export interface Threads {
  readonly list: readonly ThreadSummary[];
  /** Message -> the newest thread about it. */
  readonly byParent: ReadonlyMap<string, ThreadSummary>;
}

export const ThreadsContext = createContext<Threads>({ list: [], byParent: new Map() });

/** The threads; the same object while none of them changed, so that not every message is drawn again. Once for the page. */
export function useKnownThreads(): Threads {
  const kept = useRef<{ of: readonly unknown[]; threads: Threads }>({ of: [], threads: { list: [], byParent: new Map() } });
  return useChat((state) => {
    const of = [state.conversations, state.turns, state.outbox, state.mainId];
    if (of.every((input, index) => input === kept.current.of[index])) return kept.current.threads;
    const list = threadsOf(state);
    const unchanged = same(list, kept.current.threads.list);
    const byParent = () => new Map(list.toReversed().map((thread) => [thread.parentEntryId ?? '', thread]));
    kept.current = { of, threads: unchanged ? kept.current.threads : { list, byParent: byParent() } };
    return kept.current.threads;
  });
}
