/**
 * Owns: the one door to PostgreSQL for queries (slonik). Rows are validated, int8 is a number, timestamptz is an ISO string in UTC.
 * Guard rails (each is a fault of the library when it is left alone): results are validated only through our interceptor; the connection
 * is not reset between uses (that would drop prepared statements); the pool has no acquire bound of its own, so a gate stands before it;
 * idle connections are kept; a thrown query destroys its connection, so expected outcomes are rows and never exceptions;
 * a caller that queues inside of slonik can be forgotten for ever when a new connection dies at once (and the process with it, by an
 * unhandled rejection), so the gate lets in fewer than it has connections, and keeps none in reserve; a connection whose peer vanished
 * hangs for as long as TCP lets it, so the gate stops waiting for an answer, and the pool is replaced; connections are handed out in turn, so
 * they are kept taken (kept-connections.ts).
 * Does not own: LISTEN (db/listener.ts), the embedded server (db/embedded).
 */
import {
  createPool,
  createTypeParserPreset,
  type DatabasePoolConnection,
  type Interceptor,
  type QuerySqlToken,
  SchemaValidationError,
} from 'slonik';
import type { z } from 'zod';
import { busyFault, databaseFault, unavailableFault } from './faults.ts';
import { KeptConnections } from './kept-connections.ts';

export { sql } from 'slonik';

const CONNECT_MAX_MS = 5_000;
const CONNECT_TRIES = 2;
/** Beyond those in use: a connection that dies is replaced before it is gone. */
const SPARE_CONNECTIONS = 2;
/** The way there and back. */
const ANSWER_MARGIN_MS = 1_000;
/** Statements of one transaction, as a bound for its time. */
const TRANSACTION_STATEMENTS = 4;

export interface DatabaseOptions {
  readonly url: string;
  /** Connections in use at the same time. */
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
  // Nearly every one: a session in UTC, a year of four digits. The rest needs a calendar.
  if (value.endsWith('+00') && value[4] === '-' && value[10] === ' ') {
    return `${value.slice(0, 10)}T${value.slice(11, 19)}.${value.slice(20, -3).slice(0, 3).padEnd(3, '0')}Z`;
  }
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

/** slonik's pool of the moment. */
class Pools {
  readonly #options: DatabaseOptions;
  #current: Promise<KeptConnections> | undefined;

  constructor(options: DatabaseOptions) {
    this.#options = options;
  }

  /** Rejects with DATABASE_UNAVAILABLE when a new one is needed and the database does not answer; the next call tries again. */
  get(): Promise<KeptConnections> {
    this.#current ??= connect(this.#options).catch((error: unknown) => {
      this.#current = undefined;
      throw error;
    });
    return this.#current;
  }

  /** Gives a pool up that does not answer; its other callers hear that the database is away. */
  giveUp(pool: KeptConnections): void {
    void this.#current?.then((current) => {
      if (current !== pool) return;
      this.#current = undefined;
      pool.end().catch(() => {}); // it hangs; that is why
    });
  }

  async close(): Promise<void> {
    await (await this.#current)?.end();
  }
}

/** A counting gate with a bounded, timed queue. */
class Gate {
  #free: number;
  readonly #waiters: { grant: () => void; timer: NodeJS.Timeout }[] = [];
  readonly #options: DatabaseOptions;
  readonly #pools: Pools;

  constructor(options: DatabaseOptions, pools: Pools) {
    this.#options = options;
    this.#pools = pools;
    this.#free = options.poolMax;
  }

  usage() {
    return { inUse: this.#options.poolMax - this.#free, waiting: this.#waiters.length };
  }

  /** `statements`: how many the work sends one after the other. */
  async run<T>(work: (connection: DatabasePoolConnection) => Promise<T>, statements = 1): Promise<T> {
    await this.#enter();
    try {
      const pool = await this.#pools.get();
      return await this.#answered(pool, pool.use(work), statements);
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

  /** PostgreSQL ends a statement at its own limit: later than that there is no answer any more. Its outcome is unknown. */
  #answered<T>(pool: KeptConnections, work: Promise<T>, statements: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => {
          this.#pools.giveUp(pool);
          reject(unavailableFault());
        },
        CONNECT_TRIES * connectMs(this.#options) + this.#options.statementTimeoutMs * statements + ANSWER_MARGIN_MS,
      );
      work.then(resolve, reject).finally(() => clearTimeout(timer));
    });
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
  const pools = new Pools(options);
  await pools.get();
  const gate = new Gate(options, pools);
  return {
    any: (query) => gate.run((connection) => connection.any(query)),
    one: (query) => gate.run((connection) => connection.one(query)),
    maybeOne: (query) => gate.run((connection) => connection.maybeOne(query)),
    transaction: (work) =>
      gate.run((connection) => connection.transaction((tx) => work(tx as unknown as Executor)), TRANSACTION_STATEMENTS),
    usage: () => gate.usage(),
    close: () => pools.close(),
  };
}

function connectMs({ acquireTimeoutMs }: DatabaseOptions): number {
  return Math.min(CONNECT_MAX_MS, acquireTimeoutMs);
}

async function connect(options: DatabaseOptions): Promise<KeptConnections> {
  const url = new URL(options.url);
  url.searchParams.set('application_name', options.applicationName);
  // Prepared statements keep one plan: planning our long statements anew costs more than running them.
  const given = url.searchParams.get('options');
  url.searchParams.set('options', `${given === null ? '' : `${given} `}-c plan_cache_mode=force_generic_plan`);
  try {
    const pool = await createPool(url.toString(), {
      maxPoolSize: options.poolMax + SPARE_CONNECTIONS,
      minPoolSize: 0,
      idleTimeout: 'DISABLE_TIMEOUT',
      connectionTimeout: connectMs(options),
      connectionRetryLimit: CONNECT_TRIES,
      statementTimeout: options.statementTimeoutMs,
      idleInTransactionSessionTimeout: options.statementTimeoutMs,
      resetConnection: async () => {},
      interceptors: [validateRows],
      typeParsers,
    });
    return new KeptConnections(pool);
  } catch (error) {
    throw databaseFault(error);
  }
}
