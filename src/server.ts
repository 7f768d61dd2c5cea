/**
 * Owns: putting one server together and taking it apart in the right order. With main.ts the only place that sees everything.
 */
import { type Actors, createActors, failureTexts, type SandboxHost } from '../actors/index.ts';
import { reconcileSlots } from '../db/ledger/slots.ts';
import { connectionKeys } from '../db/models/connections.ts';
import { writeEnvironmentModel } from '../db/models/environment.ts';
import { slackTokens } from '../db/slack/connections.ts';
import type { Config } from './config.ts';
import { buildContext } from './context/build.ts';
import { ContextDesk } from './context/desk.ts';
import { PathWatch } from './context/path-watch.ts';
import { searchForRun } from './context/search.ts';
import { LIMITS } from './contract/limits.ts';
import { type OpenedDatabase, openServerDatabase } from './database.ts';
import type { Gateway } from './gateway/index.ts';
import { BrowserKey, createAgentListener, createEarlyOpsListener, type EarlyOpsListener, type HttpListener } from './http/index.ts';
import { systemClock } from './kernel/clock.ts';
import type { Log } from './kernel/log.ts';
import { rotateSecrets } from './kernel/rotate-secrets.ts';
import { SecretBox } from './kernel/secret-box.ts';
import { createLive, type Live } from './live/index.ts';
import { createMetrics, type Metrics, recover } from './ops/index.ts';
import { prepareSandboxes, type Sandboxes } from './sandboxes.ts';
import { doorForOperators, doorForPeople } from './server-doors.ts';
import { buildName, type Operators, openOperators } from './server-operators.ts';
import {
  CONNECTIONS_MAX,
  environmentModel,
  gatewayMiddleware,
  gaugeSources,
  openContext,
  openGateway,
  ownHost,
  RuntimeDoor,
  type ServerState,
} from './server-parts.ts';
import { openPeople, type PeopleParts } from './server-people.ts';
import { openSlack } from './server-slack.ts';
import { type Observers, openObservers } from './server-traces.ts';
import type { Slack } from './slack/index.ts';

export interface ServerHooks {
  /** Instead of local processes; `gateway` is the agent listener's address. */
  readonly sandboxHost?: (gateway: string) => SandboxHost;
  /** Instead of Prometheus metrics. */
  readonly metrics?: Metrics;
  /** The link that signs a browser in was opened, and there is another one now. */
  readonly linkUsed?: () => void;
}

export interface RunningServer {
  readonly ports: { readonly web: number; readonly agent: number; readonly ops: number };
  readonly actors: Actors;
  /** Null: a request from this machine is the account. */
  readonly browserKey: BrowserKey | null;
  /** Resolves when the embedded PostgreSQL ended by itself; never without one. */
  readonly databaseGone: Promise<string>;
  /** Resolves when an operator asks this server to drain: then `stop` it. */
  readonly drainAsked: Promise<void>;
  /** Drains: fails readiness, claims nothing more, hands runs on, answers what was accepted, closes. */
  stop(): Promise<void>;
}

const SWEEP_MS = 1_000;

/** Starts a server. Rejects with an Error whose message is a sentence for the person when the person can change the reason. */
export async function startServer(config: Config, log: Log, hooks: ServerHooks = {}): Promise<RunningServer> {
  const preparing = prepareSandboxes(config, log);
  preparing.catch(() => undefined); // awaited below
  const start = openOperations(config, log);
  let opened: OpenedDatabase | undefined;
  try {
    opened = await openServerDatabase(config, log);
    start.stage = 'The server prepares its sandboxes.';
    const sandboxes = await preparing;
    await reconcileSlots(opened.db, config.capacityTurns);
    await writeEnvironmentModel(opened.db, environmentModel(config));
    const secrets = new SecretBox(config.secretKeys);
    await rotateSecrets({ secrets, log, what: 'connection key', store: connectionKeys(opened.db) });
    await rotateSecrets({ secrets, log, what: 'slack token', store: slackTokens(opened.db) });
    return await assemble({ config, log, opened, hooks, sandboxes, start });
  } catch (error) {
    await Promise.all([opened?.close(), start.listener.stop(0)]);
    throw error;
  }
}

interface Start {
  /** What the server waits for, while only probes are answered. */
  stage: string;
  readonly listener: EarlyOpsListener;
  /** Rejects when it cannot be opened: that is told after what is wrong with the data directory or the database. */
  readonly port: Promise<number>;
}

/** Probes are answered from the first moment: a database that is slow to come is no dead server. */
function openOperations({ bindHost, opsPort }: Config, log: Log): Start {
  const stage = 'The server waits for its database, or applies migrations.';
  const listener = createEarlyOpsListener({ stage: () => start.stage, connectionsMax: CONNECTIONS_MAX, log });
  const start: Start = { stage, listener, port: listener.start(bindHost, opsPort) };
  start.port.catch(() => undefined);
  return start;
}

interface Parts {
  readonly config: Config;
  readonly log: Log;
  readonly opened: OpenedDatabase;
  readonly hooks: ServerHooks;
  readonly sandboxes: Sandboxes;
  readonly start: Start;
}

/**
 * Sandboxes need the agent listener's address, the actors need the sandboxes, the listener needs the actors: the listener opens first and
 * answers 503 until the actors are there.
 */
async function assemble({ config, log, opened, hooks, sandboxes, start }: Parts): Promise<RunningServer> {
  const { db, url } = opened;
  const { registry, repositories } = await openContext({ config, log, db });
  const desk = new ContextDesk({ db, registry, clock: systemClock, log });
  const metrics = hooks.metrics ?? createMetrics(buildName());
  const observers = await openObservers({ config, log, metrics, host: opened.host, version: buildName() });
  const gateway = openGateway({ config, log, opened, ...observers.calls });
  const door = new RuntimeDoor();
  const watch = new PathWatch({ db, log, clock: systemClock, onBreak: metrics.pathBroken });
  const live = createLive({
    ...{ db, databaseUrl: url, redisUrl: config.redisUrl, clock: systemClock, log },
    activeConversationIds: () => door.actors?.activeConversationIds() ?? [],
    streamsPerAccountMax: config.streamsPerAccountMax,
    pingMs: config.streamPingMs,
  });
  const browserKey = sandboxes.commandsRunAsUs ? new BrowserKey(hooks.linkUsed) : null;
  const people = await openPeople({ config, db, log, changes: live.changes, browserKey });
  const slack = openSlack({ config, db, log, metrics });
  const agent = createAgentListener({
    runtime: door,
    db,
    search: (runId, request) => searchForRun(db, runId, request),
    gateway: gatewayMiddleware(gateway),
    items: desk,
    connectionsMax: CONNECTIONS_MAX,
    log,
    ...observers.agent,
  });
  const agentPort = await agent.start(config.bindHost, config.agentPort);
  const address = `http://${ownHost(config.bindHost)}:${agentPort}`;
  const sandboxHost = hooks.sandboxHost?.(address) ?? (await sandboxes.openHost({ db, agent, gateway: address, ...observers.runners }));
  const actors = createActors({
    ...{ db, log, sandboxHost, clock: systemClock, observer: metrics.kernelObserver, turns: observers.turns },
    ...{ changes: live.changes, partials: live.partials },
    buildContext: (runId) => buildContext(db, runId, { assistantName: config.assistantName, registry, watch }),
    ...{ host: opened.host, outbox: slack.outbox },
    texts: failureTexts(config.assistantName),
    times: { leaseTtlMs: config.leaseTtlMs, graceMs: LIMITS.stopGraceMs },
    ...{ maxFollowUps: config.maxFollowUps, sandboxesMax: config.sandboxesMax, sandboxIdleMs: config.sandboxIdleMs, sweepMs: SWEEP_MS },
  });
  door.actors = actors;
  const state: ServerState = { draining: false, started: false, recovery: null };
  const operators = await openOperators({ opened, log, actors, state, config, people, browserKey, runners: () => sandboxHost.list() });
  metrics.watch(gaugeSources({ db, actors, sandboxHost, live, gateway, operators }));
  gateway.start();
  live.changes.onChange((change) => gateway.seal(change.sealedRunIds));
  live.changes.onChange((change) => desk.seal(change.sealedRunIds));
  live.changes.onRemoteChange((change) => actors.changed(change));
  const doors = { config, log, opened, sandboxes, actors, live, metrics, state, repositories, people, slack, operators };
  const web = doorForPeople(doors);
  const opsPort = await start.port;
  start.listener.serve(doorForOperators(doors));
  people.sweeper.start();
  slack.start(actors);
  await live.start();
  state.recovery = await recover({ db, log, reap: () => actors.reap() });
  actors.start();
  const webPort = await web.start(config.bindHost, config.port);
  state.started = true;
  const whole = {
    ...{ config, log, opened, operators, actors, live, people, slack, gateway, watch, sandboxHost, state, observers },
    listeners: { web, agent, ops: start.listener },
  };
  let stopped: Promise<void> | undefined;
  const databaseGone =
    opened.embedded?.exited.then((how) => (state.draining ? new Promise<string>(() => {}) : how)) ?? new Promise<string>(() => {});
  const ports = { web: webPort, agent: agentPort, ops: opsPort };
  return { ports, actors, browserKey, databaseGone, drainAsked: operators.drainAsked, stop: () => (stopped ??= takeApart(whole)) };
}

interface Whole {
  readonly config: Config;
  readonly log: Log;
  readonly opened: OpenedDatabase;
  readonly operators: Operators;
  readonly actors: Actors;
  readonly live: Live;
  readonly gateway: Gateway;
  readonly watch: PathWatch;
  readonly people: PeopleParts;
  readonly slack: Slack;
  readonly sandboxHost: SandboxHost;
  readonly listeners: { readonly web: HttpListener; readonly agent: HttpListener; readonly ops: HttpListener };
  readonly state: ServerState;
  readonly observers: Observers;
}

/** Streams close with a hint when to come back; a request that was accepted is answered. */
const LISTENER_GRACE_MS = 3_000;
/** A collector that does not answer must not hold up a shutdown. */
const TRACES_GRACE_MS = 1_000;

/**
 * The order matters: nothing new is claimed, then sandboxes hand their runs on while the agent listener still answers, then people's
 * requests end, then the actors, then what they wrote to.
 */
async function takeApart({
  config,
  log,
  opened,
  operators,
  actors,
  live,
  gateway,
  watch,
  people,
  slack,
  sandboxHost,
  listeners,
  state,
  observers,
}: Whole): Promise<void> {
  state.draining = true;
  actors.stopClaiming();
  await operators.noteDraining();
  await sandboxHost.drain(config.shutdownGraceMs);
  // Where sandboxes outlive this server, a model call that runs here may end first.
  await gateway.drain(sandboxHost.outliving ? config.shutdownGraceMs : LISTENER_GRACE_MS);
  await live.hub.drain();
  await Promise.all([listeners.web.stop(LISTENER_GRACE_MS), listeners.agent.stop(LISTENER_GRACE_MS)]);
  await slack.stop();
  const answered = await actors.drain(LISTENER_GRACE_MS);
  if (!answered) log.warn('commands were still running at the end of the drain', {});
  await Promise.all([live.stop(), people.sweeper.stop()]);
  await watch.idle();
  await observers.stop(TRACES_GRACE_MS);
  await listeners.ops.stop(LISTENER_GRACE_MS);
  await operators.db.close();
  await opened.close();
}
