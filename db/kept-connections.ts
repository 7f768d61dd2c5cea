/**
 * Owns: the connections of one slonik pool between two statements: they stay taken, and the one that was used last is used first.
 * slonik hands its connections out in turn. Then each of them plans every statement (again after each ANALYZE), a quiet server keeps all of its
 * processes of PostgreSQL half warm and none warm, and taking one out and giving it back costs as much CPU time as the statement's way.
 * Does not own: how many may be in use (the gate in pool.ts).
 */
import type { DatabasePool, DatabasePoolConnection } from 'slonik';

/** One that nobody needed for so long ends: gateways and firewalls forget a silent connection after 4 minutes and more, and tell nobody. */
const IDLE_MAX_MS = 180_000;
/** A process of PostgreSQL keeps what it has learnt of every table, so it is replaced now and then; those that began together not at the same time. */
const AGE_MAX_MS = 30 * 60_000;
const AGE_SPREAD = 0.2;

interface Kept {
  readonly connection: DatabasePoolConnection;
  readonly endsMs: number;
  usedMs: number;
  /** slonik destroys what comes back with a failure, and nothing else comes back. Resolves when that is done. */
  readonly destroy: (why: unknown) => Promise<void>;
  /** Told when the connection breaks while it is in use. */
  broke: (error: unknown) => void;
}

export class KeptConnections {
  readonly #pool: DatabasePool;
  /** The one that was used last at the end. */
  readonly #idle: Kept[] = [];

  readonly #now: () => number;

  /** `now`: milliseconds on a clock that never steps back. */
  constructor(pool: DatabasePool, now = () => performance.now()) {
    this.#pool = pool;
    this.#now = now;
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
      this.#putBack(kept);
      return result;
    } catch (error) {
      await kept.destroy(error);
      throw error;
    }
  }

  #putBack(kept: Kept): void {
    const nowMs = this.#now();
    kept.usedMs = nowMs;
    if (nowMs < kept.endsMs) this.#idle.push(kept);
    else void kept.destroy(new Error('this connection is old'));
    for (let oldest = this.#idle[0]; oldest && nowMs - oldest.usedMs > IDLE_MAX_MS; oldest = this.#idle[0]) {
      this.#idle.shift();
      void oldest.destroy(new Error('nobody needs this connection'));
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
      const ended = this.#pool.connect((connection) => {
        const nowMs = this.#now();
        const endsMs = nowMs + AGE_MAX_MS * (1 - AGE_SPREAD * Math.random());
        const destroy = (why: unknown) => {
          over.reject(why);
          return settled;
        };
        kept = { connection, endsMs, usedMs: nowMs, destroy, broke: () => {} };
        resolve(kept);
        return over.promise;
      });
      const settled = ended.catch((error: unknown) => {
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
