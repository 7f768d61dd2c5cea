/**
 * Owns: what the hub needs from a connection. src/http implements it for server-sent events.
 */
import type { StreamEventName } from '../contract/events.ts';

/** One open connection to a reader. It has a bounded queue of its own. */
export interface StreamSink {
  /** False: the queue was full, everything in it was dropped, and nothing more is taken until `onDrain`. */
  send(event: StreamEventName, json: string): boolean;
  /** Nothing waits to be written. */
  readonly idle: boolean;
  /** How long the reader has not taken what was written, milliseconds; 0 when it has taken everything. */
  readonly stalledMs: number;
  /** A comment that keeps proxies from closing a quiet connection. */
  ping(): void;
  /** Writes what waits and closes. `retryMs`: how long the reader should wait before it connects again. */
  end(retryMs?: number): void;
  /** Closes at once. */
  destroy(): void;
  /** After a refused `send`: the reader has taken everything. */
  onDrain(listener: () => void): void;
  /** Once, however the connection ended; at once when it has ended already. */
  onClose(listener: () => void): void;
}
