/**
 * A reader of `GET events` for specs, on node:http, so that a spec can look at single bytes, stop reading, and hang up without a goodbye.
 * Waiting is on events: `next` resolves with the next event of a name that was not taken yet, and rejects when the stream ends first.
 */
import { EventEmitter, once } from 'node:events';
import http from 'node:http';
import { STREAM_EVENTS, type StreamEvent, type StreamEventName } from '../../src/contract/events.ts';

type Data<K extends StreamEventName> = Extract<StreamEvent, { event: K }>['data'];

/** The server said no: its status and its problem document. */
export class StreamRefused extends Error {
  readonly status: number;
  readonly problem: { readonly code: string; readonly detail: string };

  constructor(status: number, body: string) {
    super(`refused with ${status}`);
    this.status = status;
    this.problem = JSON.parse(body);
  }
}

export interface SseOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes the headers and then no byte more. */
  readonly deaf?: boolean;
}

export class SseClient {
  readonly headers: http.IncomingHttpHeaders;
  /** Everything that arrived, in order. */
  readonly received: StreamEvent[] = [];
  /** Comments, without the colon. */
  readonly comments: string[] = [];
  retryMs: number | null = null;
  bytes = 0;
  /** Resolves when the stream is over, however it ended. */
  readonly ended: Promise<void>;
  readonly #taken = new Set<StreamEvent>();
  readonly #changes = new EventEmitter();
  readonly #request: http.ClientRequest;
  readonly #response: http.IncomingMessage;
  #over = false;
  #text = '';

  private constructor(request: http.ClientRequest, response: http.IncomingMessage, options: SseOptions) {
    this.#request = request;
    this.#response = response;
    this.headers = response.headers;
    this.#changes.setMaxListeners(0);
    response.on('error', () => {}); // a cut stream is an end like any other
    this.ended = new Promise((resolve) => {
      response.once('close', () => {
        this.#over = true;
        this.#changes.emit('change');
        resolve();
      });
    });
    if (options.deaf) return;
    const decoder = new TextDecoder('utf-8', { fatal: true });
    response.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length;
      this.#text += decoder.decode(chunk, { stream: true });
      this.#cut();
    });
  }

  /** Resolves when the stream is open; rejects with StreamRefused when the server says no. */
  static async connect(url: string, options: SseOptions = {}): Promise<SseClient> {
    const request = http.get(url, { agent: false, headers: { accept: 'text/event-stream', ...options.headers } });
    request.on('error', () => {}); // after the response it shows as the end of the stream
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    if (response.statusCode === 200) return new SseClient(request, response, options);
    let body = '';
    for await (const chunk of response) body += chunk;
    throw new StreamRefused(response.statusCode ?? 0, body);
  }

  get over(): boolean {
    return this.#over;
  }

  /** The next event of this name that matches and was not taken before. */
  async next<K extends StreamEventName>(name: K, matches: (data: Data<K>) => boolean = () => true): Promise<Data<K>> {
    for (;;) {
      const found = this.received.find((one) => one.event === name && !this.#taken.has(one) && matches(one.data as Data<K>));
      if (found) {
        this.#taken.add(found);
        return found.data as Data<K>;
      }
      if (this.#over) throw new Error(`the stream ended before a ${name}; it had ${this.received.map(({ event }) => event).join(', ')}`);
      await once(this.#changes, 'change');
    }
  }

  /** Resolves when the condition holds; looked at after each frame. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#over) throw new Error('the stream ended before the condition held');
      await once(this.#changes, 'change');
    }
  }

  /** Stops reading: what the server writes fills the buffers between us. */
  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  async close(): Promise<void> {
    this.#request.destroy();
    await this.ended;
  }

  /** Hangs up with a reset instead of a goodbye. */
  reset(): void {
    this.#response.socket.resetAndDestroy();
  }

  /** Takes whole frames off the text, as the standard says. Lines end with LF here: our server writes no other. */
  #cut(): void {
    for (let end = this.#text.indexOf('\n\n'); end >= 0; end = this.#text.indexOf('\n\n')) {
      const frame = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 2);
      this.#take(frame.split('\n'));
    }
    this.#changes.emit('change');
  }

  #take(lines: readonly string[]): void {
    const field = (name: string) =>
      lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
    this.comments.push(...field(''));
    const [retry] = field('retry');
    if (retry !== undefined) this.retryMs = Number(retry);
    const [event] = field('event');
    if (event === undefined) return;
    const schema = STREAM_EVENTS[event as StreamEventName];
    const data = schema.parse(JSON.parse(field('data').join('\n')));
    this.received.push({ event, data } as StreamEvent);
  }
}
