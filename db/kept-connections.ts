/**
 * Owns: the connections of one slonik pool between two statements: they stay taken, and the one that was used last is used first.
 * slonik hands its connections out in turn. Then each of them plans every statement (again after each ANALYZE), a quiet server keeps all of its
 * processes of PostgreSQL half warm and none warm, and taking one out and giving it back costs as much CPU time as the statement's way.
 * Does not own: how many may be in use (the gate in pool.ts).
 */
import type { DatabasePool, DatabasePoolConnection } from 'slonik';

/** Then it goes back to slonik for a moment, which replaces connections that have become too old. */
const KEEP_MS = 60_000;

interface Kept {
  readonly connection: DatabasePoolConnection;
  readonly sinceMs: number;
  /** Gives it back; with a failure, slonik destroys it. Resolves when that is done. */
  readonly giveBack: (failure?: unknown) => Promise<void>;
  /** Told when the connection breaks while it is in use. */
  broke: (error: unknown) => void;
}

export class KeptConnections {
  readonly #pool: DatabasePool;
  readonly #idle: Kept[] = [];

  constructor(pool: DatabasePool) {
    this.#pool = pool;
  }

  /** Connections that are open and not in use. */
  get idle(): number {
    return this.#idle.length;
  }

  /** Runs `work` on a connection that nobody else uses meanwhile. One whose work fails is destroyed first: its session may be in any state. */
  async use<T>(work: (connection: DatabasePoolConnection) => Promise<T>): Promise<T> {
    const kept = this.#idle.pop() ?? (await this.#take());
    try {
      const result = await new Promise<T>((resolve, reject) => {
        kept.broke = reject;
        work(kept.connection).then(resolve, reject);
      });
      if (performance.now() - kept.sinceMs < KEEP_MS) this.#idle.push(kept);
      else void kept.giveBack();
      return result;
    } catch (error) {
      await kept.giveBack(error);
      throw error;
    }
  }

  /** Ends all connections, also those in use: who waits for an answer gets an error after slonik's grace. */
  end(): Promise<void> {
    return this.#pool.end();
  }

  #take(): Promise<Kept> {
    return new Promise((resolve, reject) => {
      const over = Promise.withResolvers<void>();
      let kept: Kept | undefined;
      const handedBack = this.#pool
        .connect((connection) => {
          const giveBack = (failure?: unknown) => {
            if (failure === undefined) over.resolve();
            else over.reject(failure);
            return handedBack;
          };
          kept = { connection, sinceMs: performance.now(), giveBack, broke: () => {} };
          resolve(kept);
          return over.promise;
        })
        .catch((error: unknown) => {
          reject(error); // there was none to be had
          if (kept) this.#lost(kept, error);
        });
    });
  }

  /** It broke, or its work failed. */
  #lost(kept: Kept, error: unknown): void {
    const at = this.#idle.indexOf(kept);
    if (at !== -1) this.#idle.splice(at, 1);
    kept.broke(error);
  }
}
