/**
 * Owns: loading what the person looks at: the newest page of a thread that comes into view, and the way back to one message.
 */
import { LIMITS } from '../../contract/limits.ts';
import type { ApiFailure, ChatApi } from '../net/api.ts';
import type { ChatAction, ChatState } from '../store/state.ts';
import type { Store } from '../store/store.ts';

/** Pages that are loaded in search of one message; 10,000 messages. */
const revealPagesMax = 50;

export interface OpenerPorts {
  api: Pick<ChatApi, 'entries' | 'threads'>;
  chat: Store<ChatState>;
  dispatch(action: ChatAction): void;
  loadOlder(conversationId: string, limit: number): Promise<void>;
}

function isGone(failure: ApiFailure): boolean {
  return failure.kind === 'problem' && failure.problem.status === 404;
}

export class Opener {
  readonly #ports: OpenerPorts;
  #threadId: string | null = null;
  #askingThreads = false;

  constructor(ports: OpenerPorts) {
    this.#ports = ports;
  }

  /** The conversation in view; null: the main one, which is always loaded. */
  show(threadId: string | null): void {
    this.#threadId = threadId;
    this.follow(this.#ports.chat.get());
  }

  /** Tries again what could not be opened. */
  retry(): void {
    if (this.#threadId !== null) void this.#open(this.#threadId);
  }

  /**
   * After each change: a thread in view that is not loaded (yet, or not any more after a snapshot) is read, and one that is not in view is
   * let go of (also one that was left while a snapshot's pages were on their way).
   */
  follow({ ready, sync, mainId, ranges, strangers }: ChatState): void {
    if (!ready || sync !== null) return;
    const left = Object.keys(ranges).find((id) => id !== mainId && id !== this.#threadId);
    if (left !== undefined) {
      this.#ports.dispatch({ type: 'closed', conversationId: left });
      return;
    }
    if (this.#threadId !== null && ranges[this.#threadId] === undefined) void this.#open(this.#threadId);
    if (strangers.length > 0) void this.#meet();
  }

  /**
   * Loads a conversation backwards until one of its messages is there.
   * @param threadId null: the main one
   * @returns false when it is too far back, gone, or cannot be read now
   */
  async reveal(threadId: string | null, entryId: string, signal: AbortSignal): Promise<boolean> {
    const { chat, loadOlder } = this.#ports;
    for (let pages = 0; ; pages++) {
      await this.#settled(threadId, signal);
      const { entries, ranges, mainId } = chat.get();
      const conversationId = threadId ?? mainId;
      const range = conversationId === null ? undefined : ranges[conversationId];
      if (entryId in entries) return true;
      const ended =
        conversationId === null ||
        range === undefined ||
        range.nextBefore === null ||
        range.opening !== undefined ||
        (pages > 0 && range.older === 'failed');
      if (ended || signal.aborted || pages === revealPagesMax) return false;
      await loadOlder(conversationId, LIMITS.pageMaxEntries);
    }
  }

  /** Resolves when nothing of this conversation is being read. */
  #settled(threadId: string | null, signal: AbortSignal): Promise<void> {
    const { chat } = this.#ports;
    return new Promise((resolve) => {
      const look = () => {
        const { ready, sync, ranges, mainId } = chat.get();
        const range = ranges[threadId ?? mainId ?? ''];
        const busy = !ready || sync !== null || range === undefined || range.opening === 'asked' || range.older === 'loading';
        if (busy && !signal.aborted) return;
        unsubscribe();
        signal.removeEventListener('abort', look);
        resolve();
      };
      const unsubscribe = chat.subscribe(look);
      signal.addEventListener('abort', look);
      look();
    });
  }

  async #open(conversationId: string): Promise<void> {
    const { api, chat, dispatch } = this.#ports;
    dispatch({ type: 'opening', conversationId });
    const { generation } = chat.get();
    const result = await api.entries(conversationId, { before: null, limit: LIMITS.pageDefaultEntries });
    const page = result.ok ? result.value : isGone(result.failure) ? 'gone' : 'failed';
    dispatch({ type: 'opened', conversationId, generation, page });
  }

  /** Who are these? What cannot be read now is in the next snapshot. */
  async #meet(): Promise<void> {
    if (this.#askingThreads) return;
    this.#askingThreads = true;
    const { api, chat, dispatch } = this.#ports;
    const { generation } = chat.get();
    const result = await api.threads();
    dispatch({ type: 'threads-read', generation, threads: result.ok ? result.value.threads : [] });
    this.#askingThreads = false;
  }
}
