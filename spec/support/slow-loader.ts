/**
 * A context loader that the spec holds: each load waits until the spec lets it go, and its body until the spec ends it.
 */
import { EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { ContextLoader, LoadResult } from '../../src/context/spi.ts';

export interface HeldLoad {
  readonly path: string;
  readonly signal: AbortSignal;
  /** Lets the load be prepared; resolves to its body, which the spec writes. */
  go(bytes: number): PassThrough;
  /** Lets the load fail. */
  fail(error: Error): void;
}

export class SlowLoader implements ContextLoader {
  readonly prefix = 'slow/';
  readonly held: HeldLoad[] = [];
  readonly #changes = new EventEmitter().setMaxListeners(0);

  async index(): Promise<string | null> {
    return null;
  }

  load(_request: unknown, path: string, signal: AbortSignal): Promise<LoadResult> {
    const { promise, resolve, reject } = Promise.withResolvers<LoadResult>();
    const gone = () => {
      this.#drop(held);
      reject(signal.reason);
    };
    signal.addEventListener('abort', gone, { once: true });
    const held: HeldLoad = {
      path,
      signal,
      go: (bytes) => {
        const body = new PassThrough();
        const manifest = { directory: 'slow/x', version: '1', bytes, sha256: 'a'.repeat(64), summary: null };
        this.#drop(held);
        resolve({ kind: 'prepared', manifest, body });
        return body;
      },
      fail: (error) => {
        this.#drop(held);
        reject(error);
      },
    };
    this.held.push(held);
    this.#changes.emit('change');
    return promise;
  }

  /** Resolves when exactly `count` loads are being prepared. */
  async reach(count: number): Promise<void> {
    while (this.held.length !== count) await once(this.#changes, 'change');
  }

  #drop(held: HeldLoad): void {
    const at = this.held.indexOf(held);
    if (at >= 0) this.held.splice(at, 1);
    this.#changes.emit('change');
  }
}
