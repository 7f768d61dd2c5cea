/**
 * A person's client for flow specs: asks, reads pages and turns over HTTP, and waits on turns by reading them again.
 */
import { randomUUID } from 'node:crypto';
import type { Conversation, Entry, EntryPage, QuestionResponse, Turn } from '../../src/contract/web.ts';
import { SseClient } from './sse-client.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const ENDED = new Set(['DONE', 'STOPPED', 'FAILED']);
const POLL_MS = 25;

/** What a stream has told so far of a running turn's answer. */
function wordsOf({ received }: SseClient, turnId: string): string {
  const partials = received.flatMap((one) => (one.event === 'snapshot' ? one.data.partials : one.event === 'partial' ? [one.data] : []));
  return partials
    .filter((partial) => partial.turnId === turnId)
    .reduce((text, partial) => text.slice(0, partial.offset) + partial.text, '');
}

export interface Answered {
  readonly status: number;
  readonly body: unknown;
}

export class WebClient {
  base: string;
  /** What a browser that has signed in sends; null: nothing is asked for. */
  cookie: string | null = null;

  /** `base` is the server's origin, for example `http://127.0.0.1:8080`. */
  constructor(base: string) {
    this.base = base;
  }

  async send(method: string, pathname: string, body?: unknown): Promise<Answered> {
    const headers = { ...(body === undefined ? {} : JSON_TYPE), ...(this.cookie === null ? {} : { cookie: this.cookie }) };
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await fetch(`${this.base}/workspaces/home/mentor/${pathname}`, init);
    return { status: response.status, body: await response.json().catch(() => null) };
  }

  /** Opens the link that a server printed, as a browser does. */
  async signIn(link: string): Promise<this> {
    const answer = await fetch(link, { redirect: 'manual' });
    this.cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? null;
    return this;
  }

  async #ok<T>(method: string, pathname: string, body?: unknown): Promise<T> {
    const answer = await this.send(method, pathname, body);
    if (answer.status >= 300) throw new Error(`${method} ${pathname}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  }

  ask(text: string, options: { requestId?: string; conversationId?: string } = {}): Promise<QuestionResponse> {
    return this.#ok('POST', 'questions', { requestId: randomUUID(), text, ...options });
  }

  stop(turnId: string): Promise<Turn> {
    return this.#ok('PATCH', `turns/${turnId}/status`, { status: 'STOPPED' });
  }

  turn(turnId: string): Promise<Turn> {
    return this.#ok('GET', `turns/${turnId}`);
  }

  conversation(): Promise<Conversation> {
    return this.#ok('GET', 'conversation');
  }

  /** All shown entries, oldest first. */
  async entries(conversationId: string): Promise<Entry[]> {
    const entries: Entry[] = [];
    for (let before: number | null | undefined; before !== null; ) {
      const query = before === undefined ? '' : `?before=${before}`;
      const page: EntryPage = await this.#ok('GET', `conversations/${conversationId}/entries${query}`);
      entries.unshift(...page.entries);
      before = page.nextBefore;
    }
    return entries;
  }

  /** Until the page shows these words of a running turn. A stop right after the provider sent them may be there before them. */
  async waitForWords(turnId: string, words: string): Promise<void> {
    const stream = await SseClient.connect(`${this.base}/workspaces/home/mentor/events`);
    try {
      await stream.until(() => wordsOf(stream, turnId).includes(words));
    } finally {
      await stream.close();
    }
  }

  /** Reads the turn until it has ended (or `until` holds). A connection that fails is tried again: the server may be restarting. */
  async waitForTurn(turnId: string, until: (turn: Turn) => boolean = (turn) => ENDED.has(turn.status)): Promise<Turn> {
    for (;;) {
      const turn = await this.turn(turnId).catch(() => null);
      if (turn && until(turn)) return turn;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}
