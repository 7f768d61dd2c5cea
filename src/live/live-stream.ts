/**
 * Owns: one reader: whether it is owed a snapshot, and how much of each running answer it has been sent.
 * Does not own: the connection and its queue (the sink), or when to read what (pump.ts).
 */
import type { SignInProof } from '../../db/people/sessions.ts';
import type { Partial, StreamEventName } from '../contract/events.ts';
import type { RunningPartial } from './partial-bus.ts';
import type { StreamSink } from './ports.ts';

interface Cursor {
  readonly epoch: number;
  readonly rewrites: number;
  sent: number;
  stage: string | null;
}

/** `owed`: it gets a snapshot next. `live`: it gets events. `stuck`: its queue was dropped; when it drains it is owed a snapshot. */
export type StreamState = 'owed' | 'live' | 'stuck';

export class LiveStream {
  readonly sink: StreamSink;
  /** The stream ends with it. */
  readonly proof: SignInProof;
  #state: StreamState = 'owed';
  readonly #cursors = new Map<string, Cursor>();

  /** `owed` is called when the stream needs a snapshot again. */
  constructor({ sink, proof }: Pick<LiveStream, 'sink' | 'proof'>, owed: () => void) {
    this.sink = sink;
    this.proof = proof;
    sink.onDrain(() => {
      if (this.#state !== 'stuck') return;
      this.#state = 'owed';
      owed();
    });
  }

  get state(): StreamState {
    return this.#state;
  }

  /** Events no longer suffice: something was missed, or rewritten under the reader. */
  owe(): void {
    if (this.#state === 'live') this.#state = 'owed';
  }

  /** `partials` are the running answers that the snapshot holds. */
  sendSnapshot(json: string, partials: readonly RunningPartial[]): void {
    this.#cursors.clear();
    for (const { turnId, words } of partials) {
      this.#cursors.set(turnId, { epoch: words.epoch, rewrites: words.rewrites, sent: words.length, stage: words.stage });
    }
    this.#state = this.sink.send('snapshot', json) ? 'live' : 'stuck';
  }

  send(event: StreamEventName, json: string): void {
    if (this.#state === 'live' && !this.sink.send(event, json)) this.#state = 'stuck';
  }

  /** The turn runs no more: nothing of it is sent again. */
  turnEnded(turnId: string): void {
    this.#cursors.delete(turnId);
  }

  /**
   * Sends what the reader does not have of a running answer, in one event. A reader that is behind gets nothing now and all of it later.
   * `jsonFrom`: the event from an offset on; most readers have the same words, so it is written once for all of them.
   * False: the words were rewritten under the reader, who needs a snapshot.
   */
  sendPartial(running: RunningPartial, jsonFrom: (offset: number) => string): boolean {
    if (this.#state !== 'live' || !this.sink.idle) return true;
    const { words } = running;
    const known = this.#cursors.get(running.turnId);
    const cursor = known?.epoch === words.epoch ? known : null;
    if (cursor && cursor.rewrites !== words.rewrites) return false;
    const offset = cursor?.sent ?? 0;
    if (cursor && cursor.stage === words.stage && offset >= words.length) return true;
    const sent = Math.max(offset, words.length);
    this.#cursors.set(running.turnId, { epoch: words.epoch, rewrites: words.rewrites, sent, stage: words.stage });
    this.send('partial', jsonFrom(offset));
    return true;
  }
}

/** What `sendPartial` sends of a running answer as it is now. */
export function partialFrom(running: RunningPartial): (offset: number) => string {
  const written = new Map<number, string>();
  return (offset) => {
    const json = written.get(offset) ?? JSON.stringify(toPartial(running, offset, running.words.from(offset)));
    written.set(offset, json);
    return json;
  };
}

export function toPartial(running: RunningPartial, offset: number, text: string): Partial {
  const { conversationId, turnId, words } = running;
  return { conversationId, turnId, epoch: words.epoch, offset, text, stage: words.stage };
}
