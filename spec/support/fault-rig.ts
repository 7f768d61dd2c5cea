/**
 * Owns: an installation to break: a PostgreSQL of its own, two servers that reach it over a wire each, real sandboxes, a scripted provider that
 * charges, and the auditor of the change log. A server that was killed is started again on its data directory.
 * Does not own: what is broken where (the spec), what must be true at each commit (ledger-audit.ts).
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded/index.ts';
import { migrate } from '../../db/migrate.ts';
import { type Database, sql } from '../../db/pool.ts';
import type { QuestionResponse } from '../../src/contract/web.ts';
import { pause, systemClock } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { openTestDatabase } from './database.ts';
import { runnerPids, withDescendants } from './flow.ts';
import { LedgerAudit } from './ledger-audit.ts';
import { type ModelServer, startModelServer } from './model-server.ts';
import { WebClient } from './person.ts';
import { type Hit, PgWire, type Point } from './pg-wire.ts';
import { newDataDir, removeDataDirs, ServerProcess } from './server-process.ts';

export const CAPACITY = 4;
const RETRY_MS = 50;
/** Twenty times what it takes on an idle machine. */
const UNTIL_MAX_MS = 60_000;

export type Env = Readonly<Record<string, string>>;

/** One of the two servers, over restarts. */
export class Place {
  readonly wire: PgWire;
  readonly #env: Env;
  readonly #dataDir = newDataDir();
  readonly #cookies = new WeakMap<ServerProcess, Promise<string | null>>();
  #server: Promise<ServerProcess> | undefined;

  constructor(wire: PgWire, env: Env) {
    this.wire = wire;
    this.#env = env;
  }

  /** The name of its data directory among hosts. */
  get hostName(): string {
    return readFileSync(path.join(this.#dataDir, 'host-name'), 'utf8').trim();
  }

  /** The living server; started when there is none. */
  server(): Promise<ServerProcess> {
    this.#server ??= ServerProcess.start({ env: this.#env, dataDir: this.#dataDir });
    return this.#server;
  }

  /** It runs, and the person reaches it; signed in where the server asks for that. */
  async person(): Promise<WebClient> {
    const server = await this.server();
    const person = new WebClient(`http://127.0.0.1:${server.port}`);
    const cookie = this.#cookies.get(server) ?? server.link().then(async (link) => (await person.signIn(link)).cookie);
    this.#cookies.set(server, cookie);
    person.cookie = await cookie;
    return person;
  }

  /** kill -9 of the server. It is started again when somebody asks for it. */
  async die(): Promise<void> {
    const server = await this.server();
    await server.kill();
    this.#server = undefined;
  }

  /** kill -9 of the server, and at once its successor begins to start. */
  async kill(): Promise<void> {
    await this.die();
    void this.server().catch(() => undefined); // whoever needs it hears why
  }

  /** To all its sandboxes, with what isolates them and what runs in them: a process that holds another one still does not stop it. */
  async signalSandboxes(signal: NodeJS.Signals): Promise<void> {
    for (const pid of runnerPids((await this.server()).pid).flatMap(withDescendants)) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it went with its parent
      }
    }
  }

  async close(): Promise<void> {
    await (await this.#server?.catch(() => undefined))?.kill();
    await this.wire.close();
  }
}

export interface Sprung extends Hit {
  readonly place: Place;
}

export class FaultRig {
  readonly model: ModelServer;
  /** Straight to PostgreSQL. */
  readonly db: Database;
  readonly audit: LedgerAudit;
  readonly places: readonly [Place, Place];
  readonly #postgres: EmbeddedPostgres;
  readonly #dir: string;

  private constructor(parts: Pick<FaultRig, 'model' | 'db' | 'audit' | 'places'> & { postgres: EmbeddedPostgres; dir: string }) {
    ({ model: this.model, db: this.db, audit: this.audit, places: this.places, postgres: this.#postgres, dir: this.#dir } = parts);
  }

  /** Both servers run, and the person has a main conversation with one answer. */
  static async open(leaseTtlMs: number, envs: readonly [Env, Env] = [{}, {}]): Promise<FaultRig> {
    const dir = mkdtempSync(path.join(tmpdir(), 'heph-faults-'));
    const extraSettings = { shared_buffers: '32MB', wal_level: 'logical' };
    const postgres = await startEmbeddedPostgres({ dataDir: dir, log: silentLog, extraSettings });
    const url = postgres.tcpUrl; // wires stand between it and the servers
    await migrate(url);
    const audit = await LedgerAudit.open(url, { capacity: CAPACITY, leaseTtlMs });
    if (audit === null) throw new Error('the embedded PostgreSQL keeps no logical log');
    const model = await startModelServer();
    const places = await Promise.all(
      envs.map(async (env) => {
        const wire = await PgWire.open(url);
        return new Place(wire, { ...serverEnv(model, wire.url(url), leaseTtlMs), ...env });
      }),
    );
    const db = await openTestDatabase(url, 4);
    const rig = new FaultRig({ model, db, audit, places: places as [Place, Place] & Place[], postgres, dir });
    await rig.ready();
    const { turn } = await rig.ask(rig.places[0], 'the first of all');
    await rig.ended(turn.id);
    return rig;
  }

  /** Both servers run. */
  async ready(): Promise<void> {
    await Promise.all(this.places.map((place) => place.server()));
  }

  /** Says which server comes to this point first; it waits there until `fault` has decided, and so does the caller. */
  async strike(statement: string, point: Point, fault: (sprung: Sprung) => Promise<'pass' | 'drop'>): Promise<Place> {
    const struck = Promise.withResolvers<Place>();
    for (const place of this.places) {
      place.wire.arm(statement, point, async (hit) => {
        for (const other of this.places) other.wire.disarm();
        const verdict = await fault({ ...hit, place });
        struck.resolve(place);
        return verdict;
      });
    }
    return struck.promise;
  }

  /** Asks at this server, or at the other, until one accepts: always with the same requestId, as a page does. */
  async ask(first: Place, text: string, conversationId?: string): Promise<QuestionResponse> {
    const body = { requestId: randomUUID(), text, ...(conversationId ? { conversationId } : {}) };
    const order = first === this.places[0] ? this.places : [...this.places].reverse();
    const givenUpAtMs = performance.now() + UNTIL_MAX_MS;
    for (let tries = 0; performance.now() < givenUpAtMs; tries++) {
      const person = await (order[tries % 2] as Place).person();
      const reply = await person.send('POST', 'questions', body).catch(() => null); // its server died
      if (reply?.status === 202) return reply.body as QuestionResponse;
      if (reply && reply.status < 500) throw new Error(`refused: ${reply.status} ${JSON.stringify(reply.body)}`);
      await pause(systemClock, RETRY_MS);
    }
    throw new Error('no server accepts the question');
  }

  /** The server whose sandbox has the turn's run. */
  async placeOf(turnId: string): Promise<Place> {
    const query = sql.unsafe`select h.name from agent_run r join sandbox b on b.id = r.sandbox_id join sandbox_host h on h.id = b.host_id
      where r.turn_id = ${turnId}`;
    const [host] = await this.until<{ name: string }>('the turn runs', query, (rows) => rows.length === 1);
    const found = this.places.find((place) => place.hostName === host?.name);
    if (!found) throw new Error('no server has that name');
    return found;
  }

  /** A conversation of the person beside the main one. */
  async thread(): Promise<string> {
    const id = uuidv7<'conversation'>();
    await this.read(
      z.unknown(),
      sql.unsafe`insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id)
        select ${id}, e.workspace_id, c.account_id, c.id, e.id from mentor_entry e join mentor_conversation c on c.id = e.conversation_id
        where c.parent_conversation_id is null order by e.seq limit 1 returning id`,
    );
    return id;
  }

  /** Rows, however long PostgreSQL is away. */
  async read<T>(row: z.ZodType<T>, query: ReturnType<typeof sql.unsafe>): Promise<readonly T[]> {
    return this.patiently(async () => z.array(row).parse(await this.db.any(query as never)));
  }

  /** Something that may be done again, however long PostgreSQL is away. */
  async patiently<T>(work: () => Promise<T>): Promise<T> {
    const givenUpAtMs = performance.now() + UNTIL_MAX_MS;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (performance.now() > givenUpAtMs || error instanceof z.ZodError) throw error;
        await pause(systemClock, RETRY_MS);
      }
    }
  }

  /** Reads until it holds. */
  async until<T>(what: string, query: ReturnType<typeof sql.unsafe>, holds: (rows: readonly T[]) => boolean): Promise<readonly T[]> {
    const givenUpAtMs = performance.now() + UNTIL_MAX_MS;
    while (performance.now() < givenUpAtMs) {
      const rows = await this.read(z.unknown() as z.ZodType<T>, query);
      if (holds(rows)) return rows;
      await pause(systemClock, RETRY_MS);
    }
    throw new Error(`never happened: ${what}`);
  }

  /** The turn as it ended. */
  async ended(turnId: string): Promise<{ status: string; attempt: number; error: string | null }> {
    type Turn = { status: string; attempt: number; error: string | null };
    const query = sql.unsafe`select t.status, t.attempt, t.error_code as error from mentor_turn t join agent_run r on r.turn_id = t.id
      where t.id = ${turnId} and r.state = 'ENDED'`;
    const [turn] = await this.until<Turn>('the turn ends', query, (rows) => rows.length === 1);
    return turn as Turn;
  }

  /** After a test that failed: what the servers said last. */
  async lastWords(test: Mocha.Test | undefined): Promise<void> {
    if (test?.state !== 'failed') return;
    for (const place of this.places) process.stderr.write(`${(await place.server()).tail(25)}\n`);
  }

  async close(): Promise<void> {
    await Promise.all(this.places.map((place) => place.close()));
    await this.model.close();
    await this.db.close();
    await this.#postgres.stop();
    rmSync(this.#dir, { recursive: true, force: true });
    removeDataDirs();
  }
}

function serverEnv(model: ModelServer, databaseUrl: string, leaseTtlMs: number): Record<string, string> {
  return {
    HEPH_DATABASE_URL: databaseUrl,
    HEPH_AGENT_CAPACITY_TURN_LEASE_TTL: `${leaseTtlMs}ms`,
    HEPH_AGENT_CAPACITY_TURNS: String(CAPACITY),
    HEPH_LLM_API: 'openai-completions',
    HEPH_LLM_BASE_URL: model.url,
    HEPH_LLM_API_KEY: 'provider-key-of-the-spec',
    HEPH_LLM_MODEL: 'model-of-the-spec',
    HEPH_LLM_INPUT_PRICE: '2.5',
    HEPH_LLM_OUTPUT_PRICE: '10',
    HEPH_SANDBOX_WARM: '1',
    HEPH_SANDBOX_IDLE: '5s',
    HEPH_TIME_ZONE: 'UTC',
  };
}
