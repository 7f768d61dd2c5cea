/**
 * Owns: one connection to `GET events`, kept alive: fetch, decode, watch, reconnect.
 * Does not own: sharing it between tabs (shared-stream.ts), or the meaning of an event (chat/).
 * Each connection starts with a snapshot, so a lost connection costs nothing but a moment: reconnecting is the only repair.
 */
import { type Clock, pause, type Timer } from '../../kernel/clock.ts';
import { SseDecoder, type SseFrame } from './sse-decoder.ts';

/** `refused`: the server said that this account may not have the stream; nothing is tried again. */
export type StreamStatus = { kind: 'connecting' } | { kind: 'open' } | { kind: 'waiting' } | { kind: 'refused'; status: number };

export interface StreamHandlers {
  onFrame(frame: SseFrame): void;
  onStatus(status: StreamStatus): void;
  /** Bytes came, pings included. */
  onAlive?(): void;
}

export interface StreamPorts {
  fetch(input: string, init: RequestInit): Promise<Response>;
  clock: Clock;
  /** 0 up to 1, for jitter. */
  random(): number;
}

const backoffMinMs = 250;
/** Short enough that the page is right again within 2 s of the heal, however long its server was away. */
const backoffMaxMs = 2_000;
/** The server pings every 15 s: three missed pings are a dead connection. */
const silenceMaxMs = 45_000;
/** The account has too many streams open. Others must be closed first: it is tried again at the pace that the server asks for. */
const crowdedStatus = 429;
const crowdedPauseMs = 15_000;
/** Statuses that trying again cannot change. */
const REFUSALS = [401, 403, 404];

/** Pause before the attempt after `failures` failures in a row, jittered over its upper half. In milliseconds. */
export function backoffMs(failures: number, random: number): number {
  const full = Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(failures, 10));
  return full / 2 + (full / 2) * random;
}

export class EventStream {
  readonly #url: string;
  readonly #ports: StreamPorts;
  readonly #handlers: StreamHandlers;
  #stopped: AbortController | null = null;
  #connection: AbortController | null = null;
  #wait: AbortController | null = null;
  #failures = 0;
  #lastByteMs = 0;
  #opened = false;
  #crowded = false;
  #refused = false;
  #hurry = false;

  constructor(url: string, ports: StreamPorts, handlers: StreamHandlers) {
    this.#url = url;
    this.#ports = ports;
    this.#handlers = handlers;
  }

  /** Connects and stays connected until `stop`. Starting twice is harmless. */
  start(): void {
    if (this.#stopped !== null) return;
    this.#stopped = new AbortController();
    void this.#run(this.#stopped.signal);
  }

  stop(): void {
    this.#stopped?.abort();
    this.#connection?.abort();
    this.#stopped = null;
  }

  /** A new connection, and with it a snapshot, at once. While one is being made already, that one serves. */
  reconnect(): void {
    this.#failures = 0;
    if (this.#refused) this.#restart();
    else if (this.#wait !== null) this.#wait.abort();
    else if (this.#opened) {
      this.#hurry = true;
      this.#connection?.abort();
    }
  }

  /** The page came to the front or the network came back: do not sit out a pause, and do not trust a line that was silent for `quietMs`. */
  wake(quietMs: number): void {
    const quiet = this.#ports.clock.monotonicMs() - this.#lastByteMs;
    if (this.#wait !== null || quiet >= quietMs) this.reconnect();
  }

  #restart(): void {
    this.#refused = false;
    this.#stopped = null;
    this.start();
  }

  async #run(stopped: AbortSignal): Promise<void> {
    while (!stopped.aborted) {
      this.#handlers.onStatus({ kind: 'connecting' });
      this.#opened = false;
      const refusal = await this.#connect(stopped);
      if (stopped.aborted) return;
      if (refusal !== null) {
        this.#refused = true;
        return this.#handlers.onStatus({ kind: 'refused', status: refusal });
      }
      await this.#rest(stopped);
    }
  }

  /** The pause between two connections; none when a new one was asked for. */
  async #rest(stopped: AbortSignal): Promise<void> {
    this.#failures = this.#opened ? 0 : this.#failures + 1;
    this.#opened = false;
    this.#handlers.onStatus({ kind: 'waiting' });
    if (!this.#hurry) {
      this.#wait = new AbortController();
      const signal = AbortSignal.any([this.#wait.signal, stopped]);
      await pause(this.#ports.clock, this.#crowded ? crowdedPauseMs : backoffMs(this.#failures, this.#ports.random()), signal);
      this.#wait = null;
    }
    this.#hurry = false;
  }

  /** One connection from start to end. Returns the status of a refusal, else null. Never rejects. */
  async #connect(stopped: AbortSignal): Promise<number | null> {
    const connection = new AbortController();
    this.#connection = connection;
    const signal = AbortSignal.any([connection.signal, stopped]);
    let watchdog: Timer | null = null;
    const alive = () => {
      watchdog?.cancel();
      watchdog = this.#ports.clock.after(silenceMaxMs, () => connection.abort());
      this.#lastByteMs = this.#ports.clock.monotonicMs();
    };
    this.#crowded = false;
    try {
      alive();
      const response = await this.#ports.fetch(this.#url, {
        headers: { accept: 'text/event-stream' },
        cache: 'no-store',
        credentials: 'same-origin',
        signal,
      });
      if (REFUSALS.includes(response.status)) return response.status;
      this.#crowded = response.status === crowdedStatus;
      if (!response.ok || response.body === null) return null;
      await this.#read(response.body, alive, signal);
    } catch {
      // A cut, an abort, a refused connection and an oversized event all have the same cure: the next connection's snapshot.
    } finally {
      (watchdog as Timer | null)?.cancel();
      connection.abort();
    }
    return null;
  }

  async #read(body: ReadableStream<Uint8Array>, alive: () => void, signal: AbortSignal): Promise<void> {
    const decoder = new SseDecoder();
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      alive();
      this.#handlers.onAlive?.();
      for (const frame of decoder.push(value)) {
        if (signal.aborted) return;
        if (!this.#opened) {
          this.#opened = true;
          this.#handlers.onStatus({ kind: 'open' });
        }
        this.#handlers.onFrame(frame);
      }
    }
  }
}
