/**
 * Owns: loading what the person looks at: the newest page of a thread that comes into view, and the way back to one message.
 */
import { LIMITS } from '../../contract/limits.ts';
import type { ApiFailure, ChatApi } from '../net/api.ts';
import type { ChatAction, ChatState } from '../store/state.ts';
import type { Store } from '../store/store.ts';

/** How often what stands around a message is read when a snapshot comes in between. */
const revealTriesMax = 3;

export interface OpenerPorts {
  api: Pick<ChatApi, 'entries' | 'entry' | 'threads' | 'conversation'>;
  chat: Store<ChatState>;
  dispatch(action: ChatAction): void;
}

function isGone(failure: ApiFailure): boolean {
  return failure.kind === 'problem' && failure.problem.status === 404;
}

export class Opener {
  readonly #ports: OpenerPorts;
  #threadId: string | null = null;
  #askingThreads = false;
  /** What is being asked about the thread in view. */
  readonly #introducing = new Set<string>();

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
  follow(state: ChatState): void {
    const { ready, sync, mainId, ranges, strangers } = state;
    if (!ready || sync !== null) return;
    const left = Object.keys(ranges).find((id) => id !== mainId && id !== this.#threadId);
    if (left !== undefined) {
      this.#ports.dispatch({ type: 'closed', conversationId: left });
      return;
    }
    if (this.#threadId !== null && ranges[this.#threadId] === undefined) void this.#open(this.#threadId);
    if (strangers.length > 0) void this.#meet();
    if (this.#threadId !== null) this.#introduce(this.#threadId, state);
  }

  /**
   * Loads what stands around one message when it is not there yet, however far back that is: the same few requests for any distance.
   * @param threadId null: the main conversation
   * @returns false when it is gone, or cannot be read now
   */
  async reveal(threadId: string | null, entryId: string, signal: AbortSignal): Promise<boolean> {
    const { chat } = this.#ports;
    for (let tries = 0; ; tries++) {
      await this.#settled(threadId, signal);
      const { entries, ranges, mainId } = chat.get();
      const conversationId = threadId ?? mainId;
      if (entryId in entries) return true;
      const nowhere = conversationId === null || ranges[conversationId] === undefined || ranges[conversationId].opening !== undefined;
      if (nowhere || signal.aborted || tries === revealTriesMax) return false;
      if (!(await this.#loadAround(conversationId, entryId))) return false;
    }
  }

  /** False when it cannot be: another try would find the same. */
  async #loadAround(conversationId: string, entryId: string): Promise<boolean> {
    const { api, chat, dispatch } = this.#ports;
    const found = await api.entry(entryId);
    if (!found.ok || found.value.conversationId !== conversationId) return false;
    const { seq } = found.value;
    const limit = LIMITS.pageDefaultEntries;
    const { generation } = chat.get();
    dispatch({ type: 'around-asked', conversationId });
    const [older, newer] = await Promise.all([
      api.entries(conversationId, { before: seq + 1, limit }),
      api.entries(conversationId, { after: seq, limit }),
    ]);
    // A server of the version before knows no `after` and answers with its newest page.
    const read = older.ok && newer.ok && newer.value.nextAfter !== undefined;
    dispatch({ type: 'around-read', conversationId, generation, pages: read ? { older: older.value, newer: newer.value } : null });
    return read;
  }

  /** Loads the page behind the island of a conversation. Nothing while one is being read. */
  async loadNewer(conversationId: string): Promise<void> {
    const { api, chat, dispatch } = this.#ports;
    const { sync, ranges, generation } = chat.get();
    const island = ranges[conversationId]?.island;
    if (sync !== null || island === undefined || island.newer === 'loading') return;
    dispatch({ type: 'newer-asked', conversationId });
    const result = await api.entries(conversationId, { after: island.to, limit: LIMITS.pageDefaultEntries });
    dispatch({
      type: 'newer-read',
      conversationId,
      generation,
      page: result.ok && result.value.nextAfter !== undefined ? result.value : null,
    });
  }

  /** The person is back at the end: what was loaded around another message is let go of. */
  leaveIsland(conversationId: string): void {
    if (this.#ports.chat.get().ranges[conversationId]?.island !== undefined) this.#ports.dispatch({ type: 'island-left', conversationId });
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

  /** What stands above a thread in view: which message it is about, and that message, however far back it is. */
  #introduce(threadId: string, { conversations, entries, quotes, generation, ranges }: ChatState): void {
    if (ranges[threadId]?.opening !== undefined) return;
    const info = conversations[threadId];
    const parentId = info?.parentEntryId ?? null;
    const wanted = info === undefined ? threadId : parentId;
    if (wanted === null || wanted in entries || wanted in quotes || this.#introducing.has(wanted)) return;
    this.#introducing.add(wanted);
    if (info !== undefined) this.#ports.dispatch({ type: 'quote-asked', entryId: wanted });
    void this.#ask(wanted, { isThread: info === undefined, generation }).finally(() => {
      this.#introducing.delete(wanted);
      this.follow(this.#ports.chat.get());
    });
  }

  /** What cannot be read now is asked for again under the next snapshot. */
  async #ask(id: string, { isThread, generation }: { isThread: boolean; generation: number }): Promise<void> {
    const { api, dispatch } = this.#ports;
    if (isThread) {
      const result = await api.conversation(id);
      if (result.ok) dispatch({ type: 'thread-begun', thread: result.value });
      else dispatch({ type: 'quote-read', entryId: id, generation, entry: null });
      return;
    }
    const result = await api.entry(id);
    dispatch({ type: 'quote-read', entryId: id, generation, entry: result.ok ? result.value : null });
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
