/**
 * Owns: a gateway as the agent listener mounts it, for specs: a small Koa app on loopback, a database, a manual clock, a log that is kept.
 * The credential of a sandbox is its id: authentication is src/http's and is not what these specs prove.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import type { Database } from '../../db/pool.ts';
import type { LlmApi } from '../../src/contract/agent.ts';
import {
  type CallBounds,
  createGateway,
  DEMO,
  type EnvironmentProvider,
  type Gateway,
  type ModelBounds,
  Providers,
} from '../../src/gateway/index.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import type { Log, LogFields } from '../../src/kernel/log.ts';
import { SecretBox } from '../../src/kernel/secret-box.ts';
import { useDatabase } from './database.ts';
import { ManualClock } from './manual-clock.ts';
import { type SeededAttempt, seedAttempt } from './model-attempt.ts';
import { type ModelServer, startModelServer } from './model-server.ts';
import { bindModel } from './models.ts';

export const MODEL_BOUNDS: ModelBounds = { firstByteTimeoutMs: 60_000, idleTimeoutMs: 60_000, noContentTimeoutMs: 180_000 };
export const CALL_BOUNDS: CallBounds = {
  callsMax: 100,
  callsPerRunMax: 4,
  recheckEveryMs: 1_000,
  sealWithinMs: 500,
  unverifiedMaxMs: 60_000,
};
export const PROVIDER_KEY = 'sk-of-the-provider';
export const PROVIDER_MODEL = 'provider-model-9';

export interface LogLine extends LogFields {
  readonly level: string;
  readonly event: string;
}

export interface GatewayRig {
  readonly gateway: Gateway;
  readonly clock: ManualClock;
  readonly url: string;
  readonly lines: readonly LogLine[];
  /** Lets the attempt's sandbox in; `call` does it too. */
  admit(attempt: SeededAttempt): void;
  /** Sends a model call of the attempt, as text when `body` is one. */
  call(attempt: SeededAttempt, body: unknown, options?: CallOptions): Promise<Response>;
  close(): Promise<void>;
}

export interface CallOptions {
  /** Below `/internal/llm/v1`, with its query; `/chat/completions` when left out. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface RigOptions {
  readonly db: Database;
  readonly config: EnvironmentProvider | 'demo';
  readonly addressRules?: { readonly allowPrivate: boolean };
  readonly secrets?: SecretBox;
  readonly bounds?: Partial<ModelBounds>;
  readonly callBounds?: Partial<CallBounds>;
}

/** The configuration of a provider at `url` that speaks `api`. */
export function providerAt(url: string, api: LlmApi = 'openai-completions'): EnvironmentProvider {
  return { api, baseUrl: new URL(url), apiKey: PROVIDER_KEY, model: PROVIDER_MODEL };
}

export interface GatewaySuite {
  readonly db: Database;
  readonly provider: ModelServer;
  /** A gateway in front of the provider, and an attempt that may call. It is closed after the test, or by `open` of the next. */
  open(options?: Partial<RigOptions> & { readonly api?: LlmApi }): Promise<{ readonly rig: GatewayRig; readonly attempt: SeededAttempt }>;
}

/** Registers mocha hooks: a database and a provider for the surrounding `describe`, a gateway for each test that opens one. */
export function useGateway(): GatewaySuite {
  const database = useDatabase();
  let provider: ModelServer | undefined;
  let rig: GatewayRig | undefined;
  const closeRig = async () => {
    await rig?.close();
    rig = undefined;
  };
  before(async () => {
    provider = await startModelServer();
  });
  after(() => provider?.close());
  afterEach(closeRig);
  return {
    get db() {
      return database.db;
    },
    get provider() {
      if (!provider) throw new Error('the provider is there only inside of hooks and tests');
      return provider;
    },
    async open({ api, ...options } = {}) {
      await closeRig();
      rig = await startGateway({ db: database.db, config: providerAt(this.provider.url, api), ...options });
      return { rig, attempt: await seedAttempt(database.db) };
    },
  };
}

export async function startGateway(options: RigOptions): Promise<GatewayRig> {
  const clock = new ManualClock();
  const lines: LogLine[] = [];
  const bounds = { ...MODEL_BOUNDS, ...options.bounds };
  const { db, config, addressRules = { allowPrivate: true } } = options;
  if (config === 'demo') await bindModel(db, { name: 'demo', baseUrl: null, ...DEMO });
  else await bindModel(db, { api: config.api, baseUrl: config.baseUrl.toString(), providerModel: config.model });
  const log = keepingLog(lines);
  const environment = config === 'demo' ? null : config;
  const secrets = options.secrets ?? new SecretBox({ current: null, old: null });
  const providers = new Providers({ db, clock, log, bounds, environment, secrets, addressRules });
  const callBounds = { ...CALL_BOUNDS, ...options.callBounds };
  const gateway = createGateway({ db, hostId: uuidv7<'host'>(), providers, clock, log, bounds, callBounds });
  const attempts = new Map<string, SeededAttempt>();
  const admit = (attempt: SeededAttempt) => void attempts.set(attempt.sandbox.sandboxId, attempt);
  const app = new Koa();
  app.silent = true;
  app.use((ctx, next) => {
    ctx.state['sandbox'] = attempts.get(ctx.get('authorization').replace(/^Bearer /, ''))?.sandbox;
    return next();
  });
  app.use(gateway.middleware);
  const server = createServer(app.callback());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    gateway,
    clock,
    url,
    lines,
    admit,
    call: (attempt, body, { path = '/chat/completions', headers = {}, ...more } = {}) => {
      admit(attempt);
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const init = { method: 'POST', body: text, headers: { ...attemptHeaders(attempt), ...headers }, ...more };
      return fetch(`${url}/internal/llm/v1${path}`, init);
    },
    close: () => closeAll(server, gateway, clock),
  };
}

/** What the loop sends with each model call. */
export function attemptHeaders(attempt: SeededAttempt): Record<string, string> {
  return {
    authorization: `Bearer ${attempt.sandbox.sandboxId}`,
    'content-type': 'application/json',
    'x-agent-run': attempt.runId,
    'x-agent-epoch': String(attempt.epoch),
  };
}

async function closeAll(server: Server, gateway: Gateway, clock: ManualClock): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  const drained = gateway.drain(0);
  clock.advance(0);
  await drained;
  await closed;
}

function keepingLog(lines: LogLine[]): Log {
  const note =
    (level: string) =>
    (event: string, fields: LogFields = {}) =>
      void lines.push({ level, event, ...fields });
  const log: Log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error'), child: () => log };
  return log;
}

/** What a client got of a body: its bytes, and whether it ended well. */
export async function readBody(response: Response): Promise<{ readonly text: string; readonly bytes: Buffer; readonly broken: boolean }> {
  const chunks: Uint8Array[] = [];
  let broken = false;
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) chunks.push(chunk);
  } catch {
    broken = true;
  }
  const bytes = Buffer.concat(chunks);
  return { bytes, text: bytes.toString('utf8'), broken };
}

/** Reads until the text so far holds `words`. The rest stays unread. */
export async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, words: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  while (!text.includes(words)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the stream ended before ${JSON.stringify(words)}`);
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

const UNTIL_MAX_MS = 10_000;

/** Waits for a condition, looking at it each time the event loop turns. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const givenUpAtMs = performance.now() + UNTIL_MAX_MS;
  while (!(await condition())) {
    if (performance.now() > givenUpAtMs) throw new Error(`never happened: ${what}`);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Resolves when every call has ended and its row is written. */
export function settled(rig: GatewayRig): Promise<void> {
  return until('all rows are closed', () => {
    const { inFlight, closingsWaiting } = rig.gateway.stats();
    return inFlight === 0 && closingsWaiting === 0;
  });
}
