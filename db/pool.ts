/**
 * Owns: the one door to PostgreSQL for queries (slonik). Rows are validated, int8 is a number, timestamptz is an ISO string in UTC.
 * Guard rails (each is a fault of the library when it is left alone): results are validated only through our interceptor; the connection
 * is not reset between uses (that would drop prepared statements); the pool has no acquire bound of its own, so a gate stands before it;
 * idle connections are kept; a thrown query destroys its connection, so expected outcomes are rows and never exceptions.
 * Does not own: LISTEN (db/listener.ts), the embedded server (db/embedded).
 */
import { createPool, createTypeParserPreset, type DatabasePool, type Interceptor, type QuerySqlToken, SchemaValidationError } from 'slonik';
import type { z } from 'zod';
import { busyFault, databaseFault } from './faults.ts';

export { sql } from 'slonik';

export interface DatabaseOptions {
  readonly url: string;
  /** Connections of this pool. */
  readonly poolMax: number;
  /** Callers that may wait for a connection; one more is refused with BUSY. */
  readonly waitersMax: number;
  /** Longest wait for a connection, milliseconds; then BUSY. */
  readonly acquireTimeoutMs: number;
  /** Longest time of one statement, milliseconds. */
  readonly statementTimeoutMs: number;
  readonly applicationName: string;
}

export type Query<T> = QuerySqlToken<z.ZodType<T>>;

/** What statements need: a pool or an open transaction. */
export interface Executor {
  any<T>(query: Query<T>): Promise<readonly T[]>;
  /** Exactly one row, else an exception: use it only where the statement always returns one. */
  one<T>(query: Query<T>): Promise<T>;
  maybeOne<T>(query: Query<T>): Promise<T | null>;
}

export interface Database extends Executor {
  /** Runs `work` in one transaction. It may run again after a serialization failure or a deadlock: no side effects inside. */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>;
  /** Connections in use and callers that wait, for metrics. */
  usage(): { inUse: number; waiting: number };
  close(): Promise<void>;
}

/** slonik's query context carries the zod schema of the result; each row goes through it. */
const validateRows: Interceptor = {
  name: 'validate-rows',
  transformRow: (context, _query, row) => {
    const parser = context.resultParser as z.ZodType | undefined;
    if (!parser) return row;
    const result = parser.safeParse(row);
    if (!result.success) {
      throw new SchemaValidationError(context.originalQuery, row, result.error.issues as never);
    }
    return result.data as typeof row;
  },
};

/** `2026-11-30 09:24:30.123456+00` -> `2026-11-30T09:24:30.123Z`. */
function isoTime(value: string | null): string | null {
  if (value === null) return null;
  const parts = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)?([+-]\d\d)(?::?(\d\d))?$/.exec(value);
  if (!parts) throw new RangeError('a timestamptz outside of the supported range');
  const [, day, time, fraction = '.0', hours, minutes = '00'] = parts;
  return new Date(`${day}T${time}${fraction.slice(0, 4)}${hours}:${minutes}`).toISOString();
}

const typeParsers = [
  ...createTypeParserPreset().filter(({ name }) => !['int8', 'timestamptz', 'timestamp', 'date', 'numeric'].includes(name)),
  { name: 'int8', parse: (value: string | null) => (value === null ? null : Number(value)) },
  { name: 'timestamptz', parse: isoTime },
];

/** A counting gate with a bounded, timed queue. */
class Gate {
  #free: number;
  readonly #waiters: { grant: () => void; timer: NodeJS.Timeout }[] = [];
  readonly #total: number;
  readonly #options: DatabaseOptions;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#total = options.poolMax;
    this.#free = options.poolMax;
  }

  usage() {
    return { inUse: this.#total - this.#free, waiting: this.#waiters.length };
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.#enter();
    try {
      return await work();
    } catch (error) {
      throw databaseFault(error);
    } finally {
      const next = this.#waiters.shift();
      if (next) {
        clearTimeout(next.timer);
        next.grant();
      } else {
        this.#free++;
      }
    }
  }

  #enter(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    if (this.#waiters.length >= this.#options.waitersMax) return Promise.reject(busyFault());
    return new Promise<void>((resolve, reject) => {
      const waiter = {
        grant: resolve,
        timer: setTimeout(() => {
          this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
          reject(busyFault());
        }, this.#options.acquireTimeoutMs),
      };
      this.#waiters.push(waiter);
    });
  }
}

/** Opens the pool and proves that the database answers. Rejects with DATABASE_UNAVAILABLE when it does not. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const pool = await connect(options);
  const gate = new Gate(options);
  return {
    any: (query) => gate.run(() => pool.any(query)),
    one: (query) => gate.run(() => pool.one(query)),
    maybeOne: (query) => gate.run(() => pool.maybeOne(query)),
    transaction: (work) => gate.run(() => pool.transaction((tx) => work(tx as unknown as Executor))),
    usage: () => gate.usage(),
    close: () => pool.end(),
  };
}

async function connect(options: DatabaseOptions): Promise<DatabasePool> {
  const url = new URL(options.url);
  url.searchParams.set('application_name', options.applicationName);
  try {
    const pool = await createPool(url.toString(), {
      maxPoolSize: options.poolMax,
      minPoolSize: Math.min(2, options.poolMax),
      idleTimeout: 'DISABLE_TIMEOUT',
      connectionTimeout: 5_000,
      connectionRetryLimit: 1,
      statementTimeout: options.statementTimeoutMs,
      idleInTransactionSessionTimeout: options.statementTimeoutMs,
      resetConnection: async () => {},
      interceptors: [validateRows],
      typeParsers,
    });
    return pool;
  } catch (error) {
    throw databaseFault(error);
  }
}
