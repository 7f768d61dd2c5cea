/**
 * Owns: the people of a bench: questions over the web API, and one event stream that tells when their turns have ended.
 * Does not own: how many ask at once (load.ts).
 */
import { Agent, request } from 'undici';
import type { Snapshot } from '../../src/contract/events.ts';
import type { QuestionResponse, Turn } from '../../src/contract/web.ts';
import { nowMs } from './clock.ts';
import { questionText } from './question.ts';

export interface Asked {
  readonly question: number;
  readonly conversationId: string;
  readonly entryId: string;
  /** Moments (clock.ts): before the question left, its 202, and the event that its turn has ended. */
  readonly askedMs: number;
  readonly acceptedMs: number;
  readonly endedMs: number;
}

/** A turn that has not ended after this time is a bug: the bench stops and says so. */
const TURN_WITHIN_MS = 30_000;
const ENDED = new Set(['DONE', 'STOPPED', 'FAILED']);
const BASE = '/workspaces/home/mentor';

type Ended = { readonly turn: Turn; readonly atMs: number };

export class People {
  readonly #origin: string;
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  readonly #closing = new AbortController();
  /** By requestId. */
  readonly #waiting = new Map<string, (ended: Ended) => void>();
  readonly #turnIds = new Map<string, string>();
  #questions = 0;

  private constructor(port: number) {
    this.#origin = `http://127.0.0.1:${port}`;
  }

  /** Opens the event stream; resolves with its first snapshot. */
  static async connect(port: number): Promise<People> {
    const people = new People(port);
    await people.#listen();
    return people;
  }

  /** Asks, and waits until the turn has ended. A turn that is not DONE is an error. */
  async ask(conversationId: string | null): Promise<Asked> {
    const question = ++this.#questions;
    const requestId = `bench-${question}`;
    const ended = new Promise<Ended>((resolve) => this.#waiting.set(requestId, resolve));
    const askedMs = nowMs();
    const body = { requestId, text: questionText(question), ...(conversationId === null ? {} : { conversationId }) };
    const { entry, turn } = (await this.#call('POST', '/questions', body)) as QuestionResponse;
    const acceptedMs = nowMs();
    this.#turnIds.set(requestId, turn.id);
    const { turn: last, atMs } = await within(ended, `turn ${turn.id} did not end`);
    this.#turnIds.delete(requestId);
    if (last.status !== 'DONE') throw new Error(`turn ${last.id} ended ${last.status}: ${last.error?.code ?? ''}`);
    return { question, conversationId: entry.conversationId, entryId: entry.id, askedMs, acceptedMs, endedMs: atMs };
  }

  /** Requests that only read, many at once, so that each connection of the server's pool is used. */
  async look(times: number): Promise<void> {
    await Promise.all(Array.from({ length: times }, () => this.#call('GET', '/conversation')));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#agent.destroy();
  }

  async #call(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
    const response = await request(this.#origin + BASE + path, {
      dispatcher: this.#agent,
      method,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${method} ${path} answered ${response.statusCode}: ${text.slice(0, 300)}`);
    return JSON.parse(text);
  }

  async #listen(): Promise<void> {
    const { signal } = this.#closing;
    const { body } = await request(`${this.#origin}${BASE}/events`, { dispatcher: this.#agent, signal });
    const first = Promise.withResolvers<void>();
    void this.#read(body, first.resolve).catch((error: unknown) => {
      if (!signal.aborted) first.reject(error);
    });
    await within(first.promise, 'the event stream sent no snapshot');
  }

  async #read(body: AsyncIterable<Buffer>, onSnapshot: () => void): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of body) {
      const frames = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
      rest = frames.pop() ?? '';
      for (const frame of frames) if (this.#hear(frame) === 'snapshot') onSnapshot();
    }
    if (!this.#closing.signal.aborted) throw new Error('the event stream ended');
  }

  #hear(frame: string): string {
    const event = /^event: ?(.*)$/m.exec(frame)?.[1] ?? '';
    const data = /^data: ?(.*)$/m.exec(frame)?.[1] ?? '';
    if (event === 'turn') this.#noteTurn(JSON.parse(data) as Turn);
    if (event === 'snapshot') {
      for (const turn of (JSON.parse(data) as Snapshot).conversations.flatMap((one) => one.turns)) this.#noteTurn(turn);
      void this.#lookAtOpenTurns();
    }
    return event;
  }

  #noteTurn(turn: Turn): void {
    if (!ENDED.has(turn.status)) return;
    this.#waiting.get(turn.requestId)?.({ turn, atMs: nowMs() });
    this.#waiting.delete(turn.requestId);
  }

  /** A snapshot replaces events, and carries only the newest threads: turns that we wait for are asked for. */
  async #lookAtOpenTurns(): Promise<void> {
    for (const turnId of [...this.#turnIds.values()]) this.#noteTurn((await this.#call('GET', `/turns/${turnId}`)) as Turn);
  }
}

async function within<T>(promise: Promise<T>, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${otherwise} within ${TURN_WITHIN_MS} ms`)), TURN_WITHIN_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
