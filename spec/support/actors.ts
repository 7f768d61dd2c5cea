/**
 * Owns: servers for specs that are actors and nothing else: `createActors` on a real database, with sinks that remember, and stub sandboxes
 * in this process that pull through `Runtime`. Two of them on one database are two servers.
 * Does not own: HTTP, LISTEN, processes (spec/flows has them).
 */
import {
  type Actors,
  type Attempt,
  type AttemptPartial,
  createActors,
  failureTexts,
  type Runtime,
  type SandboxIdentity,
  type TurnObserver,
} from '../../actors/index.ts';
import { HostLock } from '../../db/host-lock.ts';
import { registerHost } from '../../db/ledger/sandboxes.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { type Database, sql } from '../../db/pool.ts';
import type { AgentRun, ContextResponse } from '../../src/contract/agent.ts';
import type { Change } from '../../src/contract/changes.ts';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import { type ConversationId, type HostId, type RunId, type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { type Log, silentLog } from '../../src/kernel/log.ts';
import { makeMain, makePerson, makeSandbox, type Person, run, TIMES } from './ledger.ts';
import { ManualClock } from './manual-clock.ts';
import { SteeredDatabase } from './steered-database.ts';
import { answerAtOnce, StubSandboxHost, type TurnScript } from './stub-sandboxes.ts';

export interface ServerOptions {
  readonly clock: Clock;
  readonly script?: TurnScript;
  readonly times?: typeof TIMES;
  readonly maxFollowUps?: number;
  readonly sandboxesMax?: number;
  readonly sandboxIdleMs?: number;
  readonly sweepMs?: number;
  readonly predecessorOf?: string;
  readonly log?: Log;
  readonly assistantName?: string;
  /** Told what happened to turns. */
  readonly turns?: TurnObserver;
}

export interface Server {
  readonly actors: Actors;
  readonly runtime: Runtime;
  readonly db: SteeredDatabase;
  readonly hostId: HostId;
  readonly hostLock: HostLock;
  readonly host: StubSandboxHost;
  /** Everything that was published, oldest first. */
  readonly changes: Change[];
  readonly partials: AttemptPartial[];
  readonly cleared: TurnId[];
  /** What the others hear of a change; a spec sets it. Default: nobody hears. */
  publishes: (change: Change) => void;
  /** From now on `other` hears of each change of this server. */
  tell(other: Server): void;
  /** Submits a question and returns the ids; throws when it is not accepted. */
  ask(person: Person, text: string, extra?: { requestId?: string; conversationId?: ConversationId }): Promise<TurnId>;
  /** A sandbox of this server that the spec plays itself. */
  sandbox(person: Person, conversationId: ConversationId): Promise<SandboxIdentity>;
  /** Ends the sandboxes and the actors. */
  close(): Promise<void>;
}

/** A server on `pool`, which belongs to the database at `url`. It is started: its timers run when its clock does. */
export async function startActors({ pool, url }: { pool: Database; url: string }, options: ServerOptions): Promise<Server> {
  const { clock, script = answerAtOnce, times = TIMES, log = silentLog, assistantName = 'Heph' } = options;
  const db = new SteeredDatabase(pool);
  const host = new StubSandboxHost({ db: pool, script });
  const hostId = uuidv7<'host'>();
  const lockKey = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
  const hostLock = await HostLock.take(url, lockKey, silentLog);
  await registerHost(pool, { id: hostId, name: `host-${hostId}`, lockKey, sandboxesMax: options.sandboxesMax ?? 50 });
  const changes: Change[] = [];
  const partials: AttemptPartial[] = [];
  const cleared: TurnId[] = [];
  const actors = createActors({
    ...{ db, clock, times, log, sandboxHost: host, texts: failureTexts(assistantName) },
    changes: {
      publish: (change) => {
        changes.push(change);
        server.publishes(change);
      },
    },
    partials: {
      publish: (partial) => {
        partials.push(partial);
        return 'ok';
      },
      clear: (_conversationId, turnId) => void cleared.push(turnId),
    },
    buildContext: (runId) => contextOf(pool, runId),
    host: { id: hostId, predecessorOf: options.predecessorOf ?? null },
    ...(options.turns ? { turns: options.turns } : {}),
    maxFollowUps: options.maxFollowUps ?? 10,
    sandboxesMax: options.sandboxesMax ?? 50,
    sandboxIdleMs: options.sandboxIdleMs ?? 600_000,
    sweepMs: options.sweepMs ?? 1_000,
  });
  const { runtime } = actors;
  host.serveWith(runtime);
  actors.start();
  const server: Server = {
    publishes: () => undefined,
    ...{ actors, runtime, db, hostId, hostLock, host, changes, partials, cleared },
    tell(other) {
      server.publishes = (change) => void setImmediate(() => other.actors.changed(change));
    },
    async ask(person, text, { requestId = `r-${uuidv7()}`, conversationId } = {}) {
      const reply = await runtime.submitQuestion({
        ...person,
        conversationId: conversationId ?? null,
        ...{ requestId, surface: 'app', text, page: null },
      });
      if (reply.kind !== 'accepted') throw new Error(`not accepted: ${reply.kind}`);
      return reply.turnId;
    },
    async sandbox(person, conversationId) {
      const { id } = await makeSandbox(pool, person, conversationId, hostId);
      return { sandboxId: id, workspaceId: person.workspaceId, conversationId };
    },
    async close() {
      actors.stopClaiming();
      await host.drain();
      await actors.drain(5_000);
      await hostLock.close();
    },
  };
  return server;
}

/** What `GET context` would answer, with nothing in it but the question. */
async function contextOf(db: Database, runId: RunId): Promise<ContextResponse | null> {
  const [row] = await run(
    db,
    sql.unsafe`select t.conversation_id, t.id, t.question_entry_id, e.text from agent_run r join mentor_turn t on t.id = r.turn_id
      join mentor_entry e on e.id = t.question_entry_id where r.id = ${runId}`,
  );
  if (!row) return null;
  return {
    conversationId: String(row['conversation_id']),
    turnId: String(row['id']),
    questionEntryId: String(row['question_entry_id']),
    prompt: String(row['text']),
    ...{ entries: [], systemPrompt: '', situation: '', timeZone: 'UTC', documents: '' },
    model: { id: 'stub', api: 'openai-completions', contextTokens: 1, outputTokens: 1 },
  };
}

/** Servers of one test on one database, on the system's clock unless told otherwise; all end after it. */
export function useServers(database: {
  readonly db: Database;
  readonly url: string;
}): (options?: Partial<ServerOptions>, pool?: Database) => Promise<Server> {
  const running: Server[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((server) => server.close()));
  });
  return async (options = {}, pool = database.db) => {
    const server = await startActors({ pool, url: database.url }, { clock: systemClock, ...options });
    running.push(server);
    return server;
  };
}

const UNTIL_MAX_MS = 15_000;

/** Waits for a condition; it is looked at each time the event loop turns. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, maxMs = UNTIL_MAX_MS): Promise<void> {
  const givenUpAtMs = performance.now() + maxMs;
  while (!(await condition())) {
    if (performance.now() > givenUpAtMs) throw new Error(`never happened: ${what}`);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Moves the server's time by one sweep of its sandboxes and waits until that is through. */
export async function sweepOnce(server: Server, clock: ManualClock, sweepMs = 1_000): Promise<void> {
  const from = server.db.sent.length;
  await clock.advanceAsync(sweepMs);
  const looked = () => server.db.sent.slice(from).some(({ name }) => name === 'ledger_sandbox_demand');
  const quiet = () => server.actors.views().every((view) => view.kind === 'conversation' || view.mailboxDepth === 0);
  await until('the sweep is through', () => looked() && quiet());
}

export interface TurnFacts {
  readonly id: TurnId;
  readonly status: string;
  readonly attempt: number;
  readonly error: string | null;
  readonly state: string;
  readonly epoch: number;
  readonly answers: readonly string[];
}

/** All turns, oldest question first, each with its run and its answers. */
export async function turnsOf(db: Database, conversationId?: ConversationId): Promise<readonly TurnFacts[]> {
  const rows = await run(
    db,
    sql.unsafe`select t.id, t.status, t.attempt, t.error_code as error, r.state, r.epoch,
        coalesce((select json_agg(e.text order by e.seq) from mentor_entry e where e.turn_id = t.id and e.kind = 'ANSWER'), '[]') as answers
      from mentor_turn t join agent_run r on r.turn_id = t.id
      where ${conversationId ?? null}::uuid is null or t.conversation_id = ${conversationId ?? null}::uuid
      order by t.conversation_id, t.question_seq`,
  );
  return rows as unknown as readonly TurnFacts[];
}

export async function turnOf(db: Database, turnId: TurnId): Promise<TurnFacts> {
  const found = (await turnsOf(db)).find((turn) => turn.id === turnId);
  if (!found) throw new Error('no such turn');
  return found;
}

/** Waits until the turn has this status. */
export async function becomes(db: Database, turnId: TurnId, status: string): Promise<TurnFacts> {
  let turn = await turnOf(db, turnId);
  await until(`the turn is ${status}`, async () => {
    turn = await turnOf(db, turnId);
    return turn.status === status;
  });
  return turn;
}

/** Slots that are held now. */
export async function heldSlots(db: Database): Promise<number> {
  const [row] = await run(db, sql.unsafe`select count(run_id)::int as held from turn_slot`);
  return Number(row?.['held']);
}

/** A server whose time stands still, a person, and slots. What happens there, happens without a timer. */
export async function openScene(
  start: ReturnType<typeof useServers>,
  db: Database,
  options: Partial<ServerOptions> & { capacity?: number } = {},
) {
  const { capacity = 4, ...rest } = options;
  await reconcileSlots(db, capacity);
  const clock = new ManualClock();
  const server = await start({ clock, ...rest });
  return { db, clock, server, person: await makePerson(db) };
}

/** The same with the person's main conversation, whose sandbox is played by the test. */
export async function openPlayed(start: ReturnType<typeof useServers>, db: Database, options: Parameters<typeof openScene>[2] = {}) {
  const it = await openScene(start, db, options);
  const conversationId = await makeMain(db, it.person);
  return { ...it, conversationId, ...(await playSandbox(it.server, it.person, conversationId)) };
}

export interface Pull {
  readonly answer: Promise<AgentRun | null>;
  hangUp(): void;
}

/** A sandbox that only does what the test does for it. */
export async function playSandbox(server: Server, person: Person, conversationId: ConversationId) {
  const sandbox = await server.sandbox(person, conversationId);
  const handled = () => server.actors.views().find((view) => view.id === conversationId)?.commandsHandled ?? 0;
  const pull = (waitMs = 20_000): Pull => {
    const client = new AbortController();
    const answer = server.runtime.claimNext(sandbox, waitMs, client.signal);
    answer.catch(() => undefined); // a test that does not await it is not interested in its fault
    return { answer, hangUp: () => client.abort() };
  };
  return {
    sandbox,
    pull,
    /** A pull that waits at the conversation's actor. */
    async parked(waitMs?: number): Promise<Pull> {
      const before = handled();
      const parked = pull(waitMs);
      await until('the pull is parked', () => handled() > before);
      return parked;
    },
    attempt(run: { readonly id: string; readonly epoch: number } | null): Attempt {
      if (run === null) throw new Error('no run was given');
      return { sandbox, runId: run.id as RunId, epoch: run.epoch };
    },
  };
}
