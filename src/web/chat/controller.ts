/**
 * Owns: the chat as a whole without its looks: takes what the stream and the person bring, does the I/O that the state asks for.
 * Does not own: the rules (store/), the wire (net/), the words (strings.ts, given as `words`), the page (ui/).
 * Own questions go out one after the other, so that the ledger gets them in the order in which they were asked (rule R3).
 */

import type { PageContext } from '../../contract/web.ts';
import { type Clock, pause } from '../../kernel/clock.ts';
import { uuidv7 } from '../../kernel/ids.ts';
import type { ApiFailure, ChatApi } from '../net/api.ts';
import { backoffMs, type StreamHandlers, type StreamStatus } from '../net/event-stream.ts';
import type { SseFrame } from '../net/sse-decoder.ts';
import type { KeyValueStorage } from '../settings.ts';
import { hasGap } from '../store/partials.ts';
import { reduce } from '../store/reducer.ts';
import { type ChatAction, type ChatState, EMPTY_STATE, type OutgoingQuestion } from '../store/state.ts';
import { Store } from '../store/store.ts';
import { isAfter } from '../store/unread.ts';
import { DoubtResolver } from './doubts.ts';
import { Opener } from './opener.ts';
import { loadOutbox, saveOutbox } from './outbox-storage.ts';
import { toAction } from './stream-events.ts';
import { rereadPages, rereadPlan } from './sync.ts';
import { Wishes } from './wishes.ts';

/** What the controller needs of a stream: SharedStream in the page, a hand-fed one in a spec. */
export interface ChatStream {
  start(): void;
  stop(): void;
  requestSnapshot(): void;
}

export interface ControllerPorts {
  api: ChatApi;
  openStream(handlers: Pick<StreamHandlers, 'onFrame' | 'onStatus'>): ChatStream;
  clock: Clock;
  random(): number;
  storage: KeyValueStorage;
  storageKey: string;
  words: { failure(failure: ApiFailure): string; leftBeforeSent: string };
}

/** What goes to the server of a question. */
type Sent = Pick<OutgoingQuestion, 'requestId' | 'threadId' | 'text' | 'page'>;

/** Entries of one older page: who scrolls up wants to read, not to wait. */
const olderPageEntries = 100;

export interface Connection {
  status: StreamStatus;
  /** The server speaks a newer contract than this page. */
  outdated: boolean;
}

export class ChatController {
  readonly chat = new Store<ChatState>(EMPTY_STATE);
  readonly connection = new Store<Connection>({ status: { kind: 'connecting' }, outdated: false });
  /** What is done to one message. */
  readonly wishes: Wishes;
  /** What comes into view. */
  readonly opener: Opener;
  /** The last failure of a press (stop, vote, deletion), for the person; null when there is none. */
  readonly notice = new Store<string | null>(null);
  readonly #ports: ControllerPorts;
  readonly #stream: ChatStream;
  readonly #doubts: DoubtResolver;
  readonly #askedGaps = new Set<string>();
  #sending: Promise<void> = Promise.resolve();
  #returned: { requestId: string; text: string; threadId: string | null } | null = null;
  #running = false;

  constructor(ports: ControllerPorts) {
    this.#ports = ports;
    const { api, clock, random } = ports;
    this.#doubts = new DoubtResolver({ api, clock, random, state: this.chat.get, dispatch: (action) => this.#dispatch(action) });
    const dispatch = (action: ChatAction) => this.#dispatch(action);
    const tell = (failure: ApiFailure | null) => this.notice.set(failure === null ? null : ports.words.failure(failure));
    this.wishes = new Wishes({ api, state: this.chat.get, dispatch, tell });
    this.opener = new Opener({ api, chat: this.chat, dispatch });
    this.#stream = ports.openStream({
      onFrame: (frame) => this.#onFrame(frame),
      onStatus: (status) => this.connection.set({ ...this.connection.get(), status }),
    });
    for (const question of loadOutbox(ports.storage, ports.storageKey, ports.words.leftBeforeSent)) {
      this.#dispatch({ type: 'ask', question });
    }
  }

  start(): void {
    this.#running = true;
    this.#stream.start();
  }

  stop(): void {
    this.#running = false;
    this.#stream.stop();
  }

  /** The account may have the stream again: a stream that was refused is asked for once more. */
  reconnect(): void {
    this.#stream.requestSnapshot();
  }

  /**
   * Sends a question. It shows at once; the promise settles when the server answered or did not.
   * @param threadId null: into the main conversation
   * @param page what the person looks at beside the panel, when they send it along
   */
  ask(text: string, threadId: string | null = null, page: PageContext | null = null): Promise<void> {
    // The same words after a refusal keep their requestId: should the refused write have happened after all, it is not asked twice.
    const again = this.#returned?.text === text && this.#returned.threadId === threadId;
    const requestId = again && this.#returned !== null ? this.#returned.requestId : uuidv7();
    this.#returned = null;
    this.notice.set(null);
    const askedAt = new Date(this.#ports.clock.now()).toISOString();
    const sent = { requestId, threadId, text, ...(page === null ? {} : { page }) };
    this.#dispatch({ type: 'ask', question: { ...sent, askedAt, phase: 'sending', reason: null } });
    return this.#enqueue(sent);
  }

  /** Sends an unsent question again under its own requestId. */
  resend(requestId: string): Promise<void> {
    const question = this.chat.get().outbox.find((item) => item.requestId === requestId);
    if (question === undefined || question.phase === 'sending') return Promise.resolve();
    this.#dispatch({ type: 'resend', requestId });
    return this.#enqueue(question);
  }

  discard(requestId: string): void {
    this.#dispatch({ type: 'discard', requestId });
  }

  /** Takes a refused question out of the list, for the composer. Its words; null when it is not there. */
  takeBack(requestId: string): string | null {
    const question = this.chat.get().outbox.find((item) => item.requestId === requestId);
    if (question === undefined) return null;
    this.#returned = question;
    this.discard(requestId);
    return question.text;
  }

  /** Stops a running turn, or takes a waiting one out of the queue. */
  async stopTurn(turnId: string): Promise<void> {
    if (this.chat.get().stopping.includes(turnId)) return;
    this.notice.set(null);
    this.#dispatch({ type: 'stop-asked', turnId });
    const result = await this.#ports.api.stop(turnId);
    this.#dispatch({ type: 'stop-answered', turnId, turn: result.ok ? result.value : null });
    const ended = !result.ok && result.failure.kind === 'problem' && result.failure.problem.code === 'TURN_ALREADY_ENDED';
    if (!result.ok && !ended) this.notice.set(this.#ports.words.failure(result.failure));
  }

  /**
   * Everything up to this time was read: at once on this page, soon on every device. A marker that does not reach the server is back with
   * the next snapshot, and whoever looks moves it again.
   * @param threadId null: in the main conversation
   */
  async markRead(upTo: string, threadId: string | null = null): Promise<void> {
    const { mainId, conversations } = this.chat.get();
    const info = conversations[threadId ?? mainId ?? ''];
    if (info === undefined || !isAfter(upTo, info.lastReadAt)) return;
    this.#dispatch({ type: 'read', conversationId: info.id, lastReadAt: upTo });
    await this.#ports.api.read(threadId, upTo);
  }

  /** Loads the next older page of a conversation; of the main one by default. Nothing while one is being read. */
  async loadOlder(conversationId = this.chat.get().mainId, limit = olderPageEntries): Promise<void> {
    const { sync, ranges, generation } = this.chat.get();
    const range = conversationId === null ? undefined : ranges[conversationId];
    const before = range?.island === undefined ? range?.nextBefore : range.island.from;
    if (conversationId === null || sync !== null || range?.older === 'loading' || typeof before !== 'number') return;
    this.#dispatch({ type: 'older-asked', conversationId });
    const result = await this.#ports.api.entries(conversationId, { before, limit });
    if (result.ok) this.#dispatch({ type: 'older-read', conversationId, generation, page: result.value });
    else this.#dispatch({ type: 'older-failed', conversationId, generation });
  }

  #dispatch(action: ChatAction): void {
    const before = this.chat.get();
    const after = reduce(before, action);
    this.chat.set(after);
    if (after.outbox !== before.outbox) saveOutbox(this.#ports.storage, this.#ports.storageKey, after.outbox);
    if (after.generation !== before.generation) void this.#sync(after.generation);
    if (after.sync?.overflow === true && before.sync?.overflow !== true) this.#stream.requestSnapshot();
    if (after.live !== before.live) this.#cureGaps(after);
    if (after.doubts.length > 0 && after.sync === null) void this.#doubts.resolve();
    if (after !== before) this.opener.follow(after);
  }

  #onFrame(frame: SseFrame): void {
    const action = toAction(frame);
    if (action === 'garbled') this.connection.set({ ...this.connection.get(), outdated: true });
    else if (action !== null) this.#dispatch(action);
  }

  /** Each gap asks for a snapshot once. When the server has a hole itself, its runner sends the whole text soon. */
  #cureGaps(state: ChatState): void {
    for (const [turnId, live] of Object.entries(state.live)) {
      const gap = `${turnId}:${live.epoch}`;
      if (!hasGap(live) || this.#askedGaps.has(gap)) continue;
      if (this.#askedGaps.size > 100) this.#askedGaps.clear();
      this.#askedGaps.add(gap);
      this.#stream.requestSnapshot();
    }
  }

  /** Reads the pages of a snapshot until they are there or a newer snapshot came. */
  async #sync(generation: number): Promise<void> {
    for (let failures = 0; ; failures++) {
      const pages = await rereadPages(this.#ports.api, rereadPlan(this.chat.get()));
      if (this.chat.get().generation !== generation || !this.#running) return;
      if (pages !== null) return this.#dispatch({ type: 'synced', generation, pages });
      await pause(this.#ports.clock, backoffMs(failures, this.#ports.random()));
    }
  }

  #enqueue(question: Sent): Promise<void> {
    this.#sending = this.#sending.then(() => this.#send(question));
    return this.#sending;
  }

  /** Before the first snapshot nobody knows which conversation the question belongs to. */
  #ready(): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!this.chat.get().ready) return;
        unsubscribe();
        resolve();
      };
      const unsubscribe = this.chat.subscribe(look);
      look();
    });
  }

  async #send({ requestId, threadId, text, page }: Sent): Promise<void> {
    await this.#ready();
    const conversationId = threadId ?? this.chat.get().mainId;
    const result = await this.#ports.api.ask({
      ...{ requestId, text },
      ...(conversationId === null ? {} : { conversationId }),
      ...(page === undefined ? {} : { page }),
    });
    if (result.ok) return this.#dispatch({ type: 'answered', requestId, ...result.value });
    this.#dispatch({ type: 'unsent', requestId, phase: this.#phaseOf(result.failure), reason: this.#ports.words.failure(result.failure) });
  }

  /** A refusal is the server's word that nothing was stored. Everything else leaves it open: the same requestId must be used again. */
  #phaseOf(failure: ApiFailure): 'unsent' | 'refused' {
    if (failure.kind !== 'problem') return 'unsent';
    return failure.problem.status < 500 || failure.problem.status === 503 ? 'refused' : 'unsent';
  }
}
