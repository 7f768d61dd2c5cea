/**
 * Owns: one at a time for each key, in the order of asking. A caller whose signal aborts stops waiting.
 */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<void>>();

  /** Rejects with the reason of `signal` when that aborts before the turn comes; else as `work` does. */
  async run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const done = Promise.withResolvers<void>();
    const tail = before.then(() => done.promise);
    this.#tails.set(key, tail);
    try {
      await waitFor(before, signal);
      return await work();
    } finally {
      done.resolve();
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}

function waitFor(before: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(signal.reason);
    if (signal.aborted) return gone();
    signal.addEventListener('abort', gone, { once: true });
    void before.then(() => {
      signal.removeEventListener('abort', gone);
      resolve();
    });
  });
}
