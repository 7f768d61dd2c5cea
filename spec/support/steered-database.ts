/**
 * Owns: a pool whose statements a spec can see, hold and lose. A lost reply is the real thing: the statement has committed, and its caller
 * hears that the database is away.
 */
import type { Database, Executor, Query } from '../../db/pool.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';

export interface Statement {
  /** Of a prepared statement, for example `ledger_claim`; else ''. */
  readonly name: string;
  readonly sql: string;
}

type Hook = (statement: Statement) => void | Promise<void>;

export class SteeredDatabase implements Database {
  /** Statements in the order in which they were sent. */
  readonly sent: Statement[] = [];
  /** Runs before a statement is sent. What it throws, the caller gets, and nothing is sent. */
  before: Hook = () => undefined;
  /** Runs when a statement has committed. What it throws, the caller gets instead of the rows. */
  after: Hook = () => undefined;
  readonly #real: Database;

  constructor(real: Database) {
    this.#real = real;
  }

  any<T>(query: Query<T>): Promise<readonly T[]> {
    return this.#steer(query, (real) => real.any(query));
  }

  one<T>(query: Query<T>): Promise<T> {
    return this.#steer(query, (real) => real.one(query));
  }

  maybeOne<T>(query: Query<T>): Promise<T | null> {
    return this.#steer(query, (real) => real.maybeOne(query));
  }

  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T> {
    return this.#real.transaction(work);
  }

  usage(): { inUse: number; waiting: number } {
    return this.#real.usage();
  }

  close(): Promise<void> {
    return this.#real.close();
  }

  /** Names of the prepared statements sent so far. */
  names(): readonly string[] {
    return this.sent.flatMap(({ name }) => (name === '' ? [] : [name]));
  }

  /** From now on the replies of the next `times` statements that `picks` are lost. */
  loseReplies(picks: (statement: Statement) => boolean, times = 1): void {
    let left = times;
    this.after = (statement) => {
      if (left > 0 && picks(statement)) {
        left -= 1;
        throw away();
      }
    };
  }

  async #steer<T>(query: unknown, send: (real: Database) => Promise<T>): Promise<T> {
    const { name = '', sql } = query as { name?: string; sql: string };
    const statement = { name, sql };
    await this.before(statement);
    this.sent.push(statement);
    const rows = await send(this.#real);
    await this.after(statement);
    return rows;
  }
}

export function away(): RuntimeFault {
  return new RuntimeFault('DATABASE_UNAVAILABLE', 'The database does not answer. Try again in a moment.', { retry: 'later' });
}

export function named(name: string): (statement: Statement) => boolean {
  return (statement) => statement.name === name;
}

/** A barrier: each caller waits until `parties` have come. Later ones pass. */
export function rendezvous(parties: number): () => Promise<void> {
  const all = Promise.withResolvers<void>();
  let come = 0;
  return () => {
    come += 1;
    if (come >= parties) all.resolve();
    return all.promise;
  };
}
