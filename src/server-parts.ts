/**
 * Owns: the parts of a server that need a decision or a translation when they are put together (server.ts does that).
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Middleware } from 'koa';
import type { Actors, Attempt, Runtime, SandboxHost } from '../actors/index.ts';
import { countSlots } from '../db/ledger/slots.ts';
import { migrationNames } from '../db/migrate.ts';
import { type EnvironmentModel, isEnvironmentModel } from '../db/models/environment.ts';
import type { Database } from '../db/pool.ts';
import { outboxSize } from '../db/slack/outbox.ts';
import type { Config } from './config.ts';
import { type GitRepositories, openGitRepositories, type ResolveHost } from './context/loaders/git/index.ts';
import { ContextRegistry } from './context/registry.ts';
import { conversationSource } from './context/sources/conversation/source.ts';
import { userSource } from './context/sources/user/source.ts';
import { workspaceSource } from './context/sources/workspace/source.ts';
import type { OpenedDatabase } from './database.ts';
import { checkBaseUrl, createGateway, DEMO, type Gateway, type GatewayOptions, guardedLookup, Providers } from './gateway/index.ts';
import type { ReadinessPart, SessionFacts } from './http/index.ts';
import { systemClock } from './kernel/clock.ts';
import { RuntimeFault } from './kernel/faults.ts';
import type { Log } from './kernel/log.ts';
import { SecretBox } from './kernel/secret-box.ts';
import type { Live } from './live/index.ts';
import { ModelAdmin } from './models/admin.ts';
import {
  capacityPart,
  databasePart,
  drainingPart,
  environmentModelPart,
  type GaugeSources,
  type InstallationLoad,
  listeningPart,
  migrationsPart,
  notePart,
  type Recovery,
} from './ops/index.ts';
import type { Sandboxes } from './sandboxes.ts';

/** Open connections of a listener. */
export const CONNECTIONS_MAX = 10_000;
/** Folder of the built page. */
export const PAGE_FOLDER = fileURLToPath(new URL('../dist/web', import.meta.url));

/** Bounds of the gateway of one server. */
const CALL_BOUNDS = { callsMax: 2_000, callsPerRunMax: 4, recheckEveryMs: 1_000, sealWithinMs: 1_000 };

/** More actors than this are not told apart in one scrape. */
const ACTORS_PER_SCRAPE_MAX = 100_000;

/** The host of a URL by which this machine reaches a listener that is bound to `bindHost`; one that is bound to everything is on loopback, too. */
export function ownHost(bindHost: string): string {
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[bindHost] ?? bindHost;
  return host.includes(':') ? `[${host}]` : host;
}

export interface ServerState {
  draining: boolean;
  /** null until this server has looked. */
  recovery: Recovery | null;
  started: boolean;
}

/** The actors, for a listener that opens before they exist: until then each call is answered 503. */
export class RuntimeDoor implements Runtime {
  actors: Actors | undefined;

  get #open(): Runtime {
    if (this.actors) return this.actors.runtime;
    throw new RuntimeFault('BUSY', 'The server is starting. Try again in a moment.', { retry: 'later' });
  }
  submitQuestion: Runtime['submitQuestion'] = async (input) => this.#open.submitQuestion(input);
  stopTurn: Runtime['stopTurn'] = async (member, turnId) => this.#open.stopTurn(member, turnId);
  claimNext: Runtime['claimNext'] = async (sandbox, waitMs, signal) => this.#open.claimNext(sandbox, waitMs, signal);
  readContext: Runtime['readContext'] = async (attempt) => this.#open.readContext(attempt);
  renewLease: Runtime['renewLease'] = async (attempt) => this.#open.renewLease(attempt);
  publishPartial: Runtime['publishPartial'] = async (attempt, partial) => this.#open.publishPartial(attempt, partial);
  endTurn: Runtime['endTurn'] = async (attempt, end) => this.#open.endTurn(attempt, end);
  endRun: Runtime['endRun'] = async (attempt, end) => this.#open.endRun(attempt, end);
  eraseEntry: Runtime['eraseEntry'] = async (member, id) => this.#open.eraseEntry(member, id);
  editEntry: Runtime['editEntry'] = async (member, id, text) => this.#open.editEntry(member, id, text);
  voteEntry: Runtime['voteEntry'] = async (member, id, vote) => this.#open.voteEntry(member, id, vote);
}

/** The rows that this server's settings stand for. */
export function environmentModel({ provider, turnDeadlineMs: timeoutMs }: Config): EnvironmentModel {
  if (provider === null) {
    return { name: 'demo', baseUrl: null, ...DEMO, timeoutMs, price: { kind: 'NO_CHARGE', note: 'the built-in demo model' } };
  }
  const { api, baseUrl, model: providerModel, contextTokens, outputTokens, price } = provider;
  return {
    ...{ name: 'environment', api, baseUrl: baseUrl.toString(), providerModel, contextTokens, outputTokens, timeoutMs },
    price: price === null ? { kind: 'NO_CHARGE', note: 'set by the environment' } : { kind: 'PRICED', ...price },
  };
}

export function openGateway(
  parts: { config: Config; log: Log; opened: OpenedDatabase } & Pick<GatewayOptions, 'onUsage' | 'onCall'>,
): Gateway {
  const { config, log, opened, onUsage, onCall } = parts;
  const { db, host } = opened;
  const bounds = {
    firstByteTimeoutMs: config.modelFirstByteMs,
    idleTimeoutMs: config.modelIdleMs,
    noContentTimeoutMs: config.modelNoContentMs,
  };
  const { provider: environment, llmAllowPrivate: allowPrivate, secretKeys } = config;
  const shared = { db, log, bounds, clock: systemClock };
  const providers = new Providers({ ...shared, environment, addressRules: { allowPrivate }, secrets: new SecretBox(secretKeys) });
  const callBounds = { ...CALL_BOUNDS, unverifiedMaxMs: config.leaseTtlMs };
  return createGateway({
    ...shared,
    hostId: host.id,
    providers,
    callBounds,
    ...(onUsage ? { onUsage } : {}),
    ...(onCall ? { onCall } : {}),
  });
}

export function modelAdmin({ secretKeys, llmAllowPrivate: allowPrivate }: Config, db: Database): ModelAdmin {
  return new ModelAdmin({ db, secrets: new SecretBox(secretKeys), checkBaseUrl: (text) => checkBaseUrl(text, { allowPrivate }) });
}

/** Hosts of repositories are judged like those of providers. */
function resolveHost(allowPrivate: boolean): ResolveHost {
  const lookup = guardedLookup({ allowPrivate });
  return (hostname) =>
    new Promise((resolve, reject) => {
      lookup(hostname, { all: true }, (error, found) => {
        if (error) reject(error);
        else resolve(Array.isArray(found) ? found.map(({ address }) => address) : [found]);
      });
    });
}

/** What turns can read beyond their conversation. `repositories` null: this server has no git, or may not use it. */
export async function openContext({ config, log, db }: { config: Config; log: Log; db: Database }): Promise<{
  registry: ContextRegistry;
  repositories: GitRepositories | null;
}> {
  const { git, dataDir } = config;
  const repositories = git && (await openGitRepositories({ ...git, dataDir }, { db, log, resolveHost: resolveHost(git.allowPrivate) }));
  const sources = [userSource, workspaceSource, conversationSource(db)];
  return { registry: new ContextRegistry({ sources, loaders: repositories ? [repositories.loader] : [], log }), repositories };
}

/** The agent listener knows the attempt that calls; the gateway asks for its sandbox. */
export function gatewayMiddleware(gateway: Gateway): Middleware {
  return (ctx, next) => {
    ctx.state['sandbox'] = (ctx.state['attempt'] as Attempt).sandbox;
    return gateway.middleware(ctx, next);
  };
}

export function sessionFacts(config: Config, { warning }: Sandboxes): SessionFacts {
  return {
    assistantName: config.assistantName,
    warnings: () => (warning === null ? [] : [warning]),
    maxFollowUps: config.maxFollowUps,
  };
}

interface ReadinessDeps {
  readonly config: Config;
  readonly opened: OpenedDatabase;
  readonly live: Live;
  readonly state: ServerState;
  readonly sandboxes: Sandboxes;
}

/** What /readyz tells. A required part that is not ok takes this server out of traffic. */
export function readinessParts({ config, opened, live, state, sandboxes }: ReadinessDeps): readonly ReadinessPart[] {
  const { db, hostLock } = opened;
  return [
    databasePart(db),
    migrationsPart(db, migrationNames()),
    drainingPart(() => state.draining),
    recoveryPart(() => state.recovery),
    listeningPart(() => live.listening()),
    capacityPart(db, config.capacityTurns),
    environmentModelPart(() => isEnvironmentModel(db, environmentModel(config))),
    notePart('host-lock', () => ({
      warning: hostLock.held ? null : 'The session lock was lost and is being taken again. Another server may take this one for dead.',
      why: 'held',
    })),
    notePart('redis', () => ({
      warning: live.redisConnected() === false ? 'Redis is away: words that are being written do not cross between servers.' : null,
      why: config.redisUrl === null ? 'not configured; PostgreSQL carries words between servers' : 'connected',
    })),
    notePart('sandboxes', () => sandboxes.note()),
    notePart('page', () => ({ warning: hasPage() ? null : 'The page is not built: run npm run build.', why: 'built' })),
  ];
}

/** What a start found and left adds up; before that is known the server is not ready. */
function recoveryPart(recovery: () => Recovery | null): ReadinessPart {
  const starting = { ok: false, why: 'The server starts and has not yet taken back what earlier ones held.' };
  return { name: 'recovery', required: true, check: () => recovery()?.part().check() ?? starting };
}

/** Where the gauges of a scrape come from. */
export function gaugeSources(parts: {
  db: Database;
  actors: Actors;
  sandboxHost: SandboxHost;
  live: Live;
  gateway: Gateway;
  operators: { load(): Promise<InstallationLoad>; readonly db: Database };
}): GaugeSources {
  const { db, actors, sandboxHost, live, gateway, operators } = parts;
  return {
    actors: () => actors.views(ACTORS_PER_SCRAPE_MAX),
    runners: () => sandboxHost.list(),
    database: () => db.usage(),
    // Through the operators' own pool: a server whose pool is full must be able to say so.
    slots: () => countSlots(operators.db),
    installation: () => operators.load(),
    streams: () => live.hub.streams,
    listening: () => live.listening(),
    partials: () => live.partials.size,
    modelCalls: () => gateway.stats(),
    outbox: () => outboxSize(operators.db),
  };
}

function hasPage(): boolean {
  return existsSync(path.join(PAGE_FOLDER, 'index.html'));
}
