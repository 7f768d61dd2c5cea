/**
 * Owns: a reader of the event stream that comes back whenever its stream ends, as the page does, and folds what is being written with the page's
 * own code.
 */
import { foldPartial, hasGap, type LiveText } from '../../src/web/store/partials.ts';
import { SseClient, StreamRefused } from './sse-client.ts';

const COME_BACK_MAX_MS = 250;

export class StreamReader {
  /** How each stream that ended by itself told when to come back; null: it did not. */
  readonly hints: (number | null)[] = [];
  /** Turns that were seen while they were written, in any connection. */
  readonly seen = new Set<string>();
  /** What is shown of each turn, by its id. */
  readonly shown = new Map<string, LiveText>();
  /** Ended turns: a word that comes after the end is not shown. */
  readonly #over = new Set<string>();
  readonly #url: string;
  readonly #life: Promise<void>;
  #stream: SseClient | null = null;
  #closed = false;

  constructor(base: string) {
    this.#url = `${base}/workspaces/home/mentor/events`;
    this.#life = this.#read();
  }

  /** Turns of which words are missing on the screen. */
  get gaps(): readonly string[] {
    return [...this.shown].filter(([, live]) => hasGap(live)).map(([turnId]) => turnId);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#stream?.close();
    await this.#life;
  }

  async #read(): Promise<void> {
    while (!this.#closed) {
      try {
        this.#stream = await SseClient.connect(this.#url);
      } catch (error) {
        if (error instanceof StreamRefused && error.status < 500) throw error;
        await comeBack(COME_BACK_MAX_MS);
        continue;
      }
      let at = 0;
      const stream = this.#stream;
      await stream
        .until(() => {
          for (; at < stream.received.length; at++) this.#take(stream.received[at] as SseClient['received'][number]);
          return this.#closed || this.gaps.length > 0; // a gap is cured by a snapshot
        })
        .catch(() => undefined); // it ended
      if (stream.over && !this.#closed) this.hints.push(stream.retryMs);
      await stream.close();
      await comeBack(Math.min(COME_BACK_MAX_MS, stream.retryMs ?? 0));
    }
  }

  #take(event: SseClient['received'][number]): void {
    if (event.event === 'snapshot') {
      this.shown.clear();
      for (const partial of event.data.partials) this.#fold(partial);
    } else if (event.event === 'partial') this.#fold(event.data);
    else if (event.event === 'turn' && ['DONE', 'FAILED', 'STOPPED'].includes(event.data.status)) {
      this.#over.add(event.data.id);
      this.shown.delete(event.data.id);
    }
  }

  #fold(partial: Parameters<typeof foldPartial>[1]): void {
    const folded = foldPartial(this.shown.get(partial.turnId), partial, null);
    if (this.#over.has(partial.turnId)) return;
    this.seen.add(partial.turnId);
    if (folded) this.shown.set(partial.turnId, folded);
  }
}

function comeBack(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
