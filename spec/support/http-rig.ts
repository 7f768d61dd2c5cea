/**
 * A server without processes for specs: the real listeners, actors and live parts on a real database. Its sandboxes are the spec itself,
 * which pulls and ends over HTTP. Two rigs on one database are two servers.
 */
import { EventEmitter, once } from 'node:events';
import {
  type Actors,
  type Attempt,
  createActors,
  failureTexts,
  type RunnerView,
  type Runtime,
  type SandboxHost,
} from '../../actors/index.ts';
import { checkAttempt } from '../../db/ledger/fence.ts';
import { registerHost } from '../../db/ledger/sandboxes.ts';
import type { Database } from '../../db/pool.ts';
import { sql } from '../../db/pool.ts';
import { searchForRun } from '../../src/context/search.ts';
import {
  type AgentListenerOptions,
  type ContextItems,
  createAgentListener,
  createWebListener,
  type HttpListener,
  type LiveStreams,
  localAuthenticator,
} from '../../src/http/index.ts';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { type HostId, uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { createLive, type Live } from '../../src/live/index.ts';
import type { PeopleParts } from '../../src/server-people.ts';
import type { Slack } from '../../src/slack/index.ts';
import { makePerson, type Person, run, TIMES } from './ledger.ts';
import { SseClient, type SseOptions } from './sse-client.ts';

export interface RigOptions {
  readonly maxFollowUps?: number;
  readonly streamsPerAccountMax?: number;
  readonly pingMs?: number;
  /** Who every request is; default: a new person. */
  readonly person?: Person;
  /** Who hears of the calls of sandboxes, and what these send along. */
  readonly agent?: Pick<AgentListenerOptions, 'traceparent' | 'observe'>;
  /** How people sign in, instead of everybody being `person`. */
  readonly people?: Pick<PeopleParts, 'authenticator' | 'signIn'>;
  readonly pageFolder?: string;
  /** Sites that may show the panel; default: none. */
  readonly embedOrigins?: readonly string[];
  readonly bindHost?: string;
  /** What `GET context` is built by; default: nothing is there. */
  readonly buildContext?: Parameters<typeof createActors>[0]['buildContext'];
  /** Default: any free one. */
  readonly webPort?: number;
  /** Time of the streams and of what servers tell each other; the actors keep the real one. */
  readonly clock?: Clock;
  /** Carries partial answers instead of NOTIFY. */
  readonly redisUrl?: string;
  /** Documents and loads; default: none. */
  readonly items?: ContextItems;
  /** Its door and its outbox; the rig starts and stops it. */
  readonly slack?: Slack;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: specs look into answers of any shape
  readonly body: any;
}

/** The hub, which tells of each stream that is gone. */
function watched(live: Live, streams: EventEmitter): LiveStreams {
  return {
    open: (member, connect, proof) =>
      live.hub.open(
        member,
        () => {
          const sink = connect();
          sink.onClose(() => queueMicrotask(() => streams.emit('closed')));
          return sink;
        },
        proof,
      ),
  };
}

/** Counts the pulls that wait. */
class PullCount {
  readonly runtime: Runtime;
  readonly #changes = new EventEmitter();
  #count = 0;

  constructor(runtime: Runtime) {
    this.runtime = {
      ...runtime,
      claimNext: async (...pull) => {
        this.#add(1);
        return runtime.claimNext(...pull).finally(() => this.#add(-1));
      },
    };
  }

  async reach(count: number): Promise<void> {
    while (this.#count !== count) await once(this.#changes, 'change');
  }

  #add(count: number): void {
    this.#count += count;
    this.#changes.emit('change');
  }
}

/** Keeps what a runner would be given, so that the spec can play the runner. */
class SpecSandboxHost implements SandboxHost {
  readonly #credentials = new Map<string, PromiseWithResolvers<string>>();

  credential(conversationId: string): PromiseWithResolvers<string> {
    const known = this.#credentials.get(conversationId) ?? Promise.withResolvers<string>();
    this.#credentials.set(conversationId, known);
    return known;
  }

  async start(request: { conversationId: string; credential: string }): Promise<void> {
    this.credential(request.conversationId).resolve(request.credential);
  }

  async end(): Promise<void> {}
  onExit(): void {}
  list(): readonly RunnerView[] {
    return [];
  }
  async drain(): Promise<void> {}
}

export interface HttpRig {
  readonly db: Database;
  readonly person: Person;
  readonly slug: string;
  readonly live: Live;
  readonly actors: Actors;
  readonly web: HttpListener;
  readonly agent: HttpListener;
  readonly webPort: number;
  readonly agentPort: number;
  readonly hostId: HostId;
  /** `path` is below `/workspaces/{slug}/mentor/` unless it begins with a slash. */
  send(method: string, path: string, init?: { body?: unknown; raw?: BodyInit; headers?: Record<string, string> }): Promise<Answer>;
  ask(text: string, extra?: Record<string, unknown>): Promise<Answer>;
  events(options?: SseOptions): Promise<SseClient>;
  /** The sandbox that this server started for a conversation with a waiting question. */
  sandbox(conversationId: string): Promise<SandboxClient>;
  /** Emits `closed` after each event stream that is gone. */
  readonly streams: EventEmitter;
  /** Resolves when exactly `count` pulls are parked here. */
  parked(count: number): Promise<void>;
  close(): Promise<void>;
}

export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const json = /json/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : null };
}

/** Registers a hook that closes, after each test, what the test opened: also when it failed. */
export function useRigs(database: { readonly db: Database; readonly url: string }): (options?: RigOptions) => Promise<HttpRig> {
  const open: HttpRig[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((rig) => rig.close()));
  });
  return async (options = {}) => {
    const rig = await openRig(database, options);
    open.push(rig);
    return rig;
  };
}

/** Stands for the gateway: it asks the fence first, as the statement that opens a call does, and makes no call. */
function fencingGateway(db: Database) {
  return async (ctx: { body: unknown; state: Record<string, unknown> }) => {
    const attempt = ctx.state['attempt'] as Attempt;
    const state = await checkAttempt(db, { runId: attempt.runId, epoch: attempt.epoch, sandboxId: attempt.sandbox.sandboxId });
    if (!state) throw new RuntimeFault('MENTOR_LEASE_LOST', 'The attempt has lost its run.');
    ctx.body = { attempt };
  };
}

async function openRig(database: { db: Database; url: string }, options: RigOptions = {}): Promise<HttpRig> {
  const { db, url } = database;
  const person = options.person ?? (await makePerson(db));
  const [workspace] = await run(db, sql.unsafe`select slug from workspace where id = ${person.workspaceId}`);
  const slug = String(workspace?.['slug']);
  const hostId = uuidv7<'host'>();
  await registerHost(db, { id: hostId, name: `rig-${hostId}`, lockKey: Math.floor(Math.random() * 2 ** 50), sandboxesMax: 4 });
  const clock = options.clock ?? systemClock;
  const streams = new EventEmitter().setMaxListeners(0);
  const live = createLive({
    ...{ db, databaseUrl: url, redisUrl: options.redisUrl ?? null, clock, log: silentLog },
    activeConversationIds: () => actors.activeConversationIds(),
    streamsPerAccountMax: options.streamsPerAccountMax ?? 10,
    pingMs: options.pingMs ?? 15_000,
  });
  const maxFollowUps = options.maxFollowUps ?? 10;
  const sandboxHost = new SpecSandboxHost();
  const actors = createActors({
    ...{ db, clock: systemClock, log: silentLog, changes: live.changes, partials: live.partials, sandboxHost },
    ...{ buildContext: options.buildContext ?? (async () => null), ...(options.slack ? { outbox: options.slack.outbox } : {}) },
    host: { id: hostId, predecessorOf: null },
    texts: failureTexts('Heph'),
    times: TIMES,
    ...{ maxFollowUps, sandboxesMax: 100, sandboxIdleMs: 60_000, sweepMs: 60_000 },
  });
  live.changes.onRemoteChange((change) => actors.changed(change));
  const web = createWebListener({
    ...{ runtime: actors.runtime, db, live: watched(live, streams), stages: live.partials, changes: live.changes, clock, log: silentLog },
    slack: options.slack?.door ?? null,
    ...(options.people ?? { authenticator: localAuthenticator(person.accountId) }),
    session: { assistantName: 'Heph', warnings: () => [], maxFollowUps },
    ...{ pageFolder: options.pageFolder ?? '/nowhere', embedOrigins: options.embedOrigins ?? [] },
    connectionsMax: 2_000,
  });
  const pulls = new PullCount(actors.runtime);
  const agent = createAgentListener({
    ...{ runtime: pulls.runtime, db, gateway: fencingGateway(db), connectionsMax: 2_000, log: silentLog, ...options.agent },
    search: (runId, request) => searchForRun(db, runId, request),
    ...(options.items ? { items: options.items } : {}),
  });
  const [webPort, agentPort] = [await web.start(options.bindHost ?? '127.0.0.1', options.webPort ?? 0), await agent.start('127.0.0.1', 0)];
  await live.start();
  options.slack?.start(actors);
  const base = `http://127.0.0.1:${webPort}`;
  const rig: HttpRig = {
    ...{ db, person, slug, live, actors, web, agent, webPort, agentPort, hostId, streams },
    async send(method, path, { body, raw, headers = {} } = {}) {
      const target = path.startsWith('/') ? path : `/workspaces/${slug}/mentor/${path}`;
      const json = body === undefined ? {} : { body: JSON.stringify(body) };
      const type = body === undefined && raw === undefined ? {} : { 'content-type': 'application/json' };
      const bytes = raw === undefined ? json : { body: raw };
      return answerOf(await fetch(`${base}${target}`, { method, headers: { ...type, ...headers }, redirect: 'manual', ...bytes }));
    },
    ask: (text, extra = {}) => rig.send('POST', 'questions', { body: { requestId: uuidv7(), text, ...extra } }),
    events: (sse) => SseClient.connect(`${base}/workspaces/${slug}/mentor/events`, sse),
    sandbox: async (conversationId) => new SandboxClient(agentPort, await sandboxHost.credential(conversationId).promise),
    parked: (count) => pulls.reach(count),
    async close() {
      actors.stopClaiming();
      await live.hub.drain();
      await Promise.all([web.stop(2_000), agent.stop(2_000), options.slack?.stop()]);
      await actors.drain(2_000);
      await live.stop();
    },
  };
  return rig;
}

/** A sandbox of the rig's conversation, as the agent listener sees it. */
export class SandboxClient {
  readonly #base: string;
  readonly credential: string;

  constructor(port: number, credential: string) {
    this.#base = `http://127.0.0.1:${port}`;
    this.credential = credential;
  }

  async send(
    method: string,
    path: string,
    init: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.credential}`, 'content-type': 'application/json', ...init.headers };
    const body = init.body === undefined ? {} : { body: JSON.stringify(init.body) };
    const signal = init.signal ? { signal: init.signal } : {};
    return answerOf(await fetch(`${this.#base}${path}`, { method, headers, ...body, ...signal }));
  }

  next(waitMs: number, signal?: AbortSignal): Promise<Answer> {
    return this.send('POST', '/internal/agent/next', { body: { waitMs }, ...(signal ? { signal } : {}) });
  }

  /** A call of a run. */
  call(run: { id: string; epoch: number }, name: string, body?: unknown): Promise<Answer> {
    const headers = { 'x-agent-run': run.id, 'x-agent-epoch': String(run.epoch) };
    const method = name === 'context' ? 'GET' : 'POST';
    return this.send(method, `/internal/agent/runs/${run.id}/${name}`, { headers, ...(body === undefined ? {} : { body }) });
  }

  partial(run: { id: string; epoch: number }, offset: number, text: string): Promise<Answer> {
    return this.call(run, 'turn/partial', { offset, text, stage: 'Thinking…' });
  }

  /** Ends the turn with one answer. */
  answer(run: { id: string; epoch: number }, text: string): Promise<Answer> {
    const id = uuidv7();
    const message = { role: 'assistant', content: [{ type: 'text', text }], stopReason: 'stop' };
    const entry = { type: 'message', id, parentId: null, timestamp: new Date().toISOString(), message };
    return this.call(run, 'turn/end', { outcome: 'DONE', entries: [entry], lastPartial: null });
  }
}
