/**
 * Owns: the environment. It is read here, once, into a frozen Config; nothing else reads `process.env` (the sandbox runner has its own twin).
 * No file but this one and those of config/ holds a default. A bad value names the variable, the value and what is allowed; all bad values are reported at once.
 */
import path from 'node:path';
import { type AuthConfig, isLoopbackHost, readAuth } from './config/auth.ts';
import { readEmbedOrigins } from './config/embed.ts';
import { type KubernetesConfig, readKubernetes } from './config/kubernetes.ts';
import { type OpsConfig, readOps } from './config/ops.ts';
import { ConfigError, Reader } from './config/reader.ts';
import { readSlack, type SlackConfig } from './config/slack.ts';
import { readTraces, type TracesConfig } from './config/traces.ts';
import { LLM_APIS, type LlmApi } from './contract/agent.ts';
import { SMALLEST_MODEL } from './contract/limits.ts';
import type { LogLevel } from './kernel/log.ts';

export type { AuthConfig, OidcConfig } from './config/auth.ts';
export type { KubernetesConfig } from './config/kubernetes.ts';
export { OPS_TOKEN_MIN_CHARS, type OpsConfig } from './config/ops.ts';
export { ConfigError, parseDurationMs } from './config/reader.ts';

export interface ProviderConfig {
  readonly api: LlmApi;
  readonly baseUrl: URL;
  readonly apiKey: string | null;
  readonly model: string;
  readonly contextTokens: number;
  readonly outputTokens: number;
  /** Prices per million tokens, decimals; null: nothing is charged. */
  readonly price: { readonly input: string; readonly output: string } | null;
}

/** Repositories that turns load. */
export interface GitConfig {
  readonly program: string;
  /** PATH: the only variable of the environment that git sees. */
  readonly searchPath: string;
  readonly allowFile: boolean;
  readonly allowPrivate: boolean;
  readonly freshMs: number;
  readonly snapshotMaxBytes: number;
  readonly mirrorMaxBytes: number;
  readonly archivesMaxBytes: number;
}

export interface Config {
  readonly bindHost: string;
  readonly port: number;
  readonly agentPort: number;
  readonly opsPort: number;
  readonly dataDir: string;
  /** null: the embedded PostgreSQL in the data directory. */
  readonly databaseUrl: string | null;
  readonly databasePoolMax: number;
  /** Carries partial answers between servers; null: PostgreSQL does. */
  readonly redisUrl: string | null;
  readonly auth: AuthConfig;
  /** Origins of other sites that may show the panel in their pages; empty: none. */
  readonly embedOrigins: readonly string[];
  readonly assistantName: string;
  readonly accountName: string;
  readonly timeZone: string;
  readonly logLevel: LogLevel;
  /** null: the built-in demo model. */
  readonly provider: ProviderConfig | null;
  /** Connections that an admin adds may lead to this machine and to private networks. */
  readonly llmAllowPrivate: boolean;
  /** Seal the keys of connections, 32 bytes each: `current` seals and opens, `old` only opens. */
  readonly secretKeys: { readonly current: Buffer | null; readonly old: Buffer | null };
  readonly capacityTurns: number;
  readonly leaseTtlMs: number;
  readonly maxFollowUps: number;
  readonly turnDeadlineMs: number;
  readonly modelFirstByteMs: number;
  readonly modelIdleMs: number;
  readonly modelNoContentMs: number;
  readonly sandboxAllowUnisolated: boolean;
  /** `auto`: as much as this machine can. `required`: no start without. */
  readonly sandboxIsolation: 'auto' | 'required' | 'off';
  /** Of one sandbox. Its disk is memory, and counts as such. */
  readonly sandboxLimits: { readonly memoryMb: number; readonly diskMb: number; readonly processes: number; readonly cpus: number };
  readonly sandboxWarm: number;
  readonly sandboxesMax: number;
  readonly sandboxIdleMs: number;
  /** null: sandboxes are processes of this machine. */
  readonly kubernetes: KubernetesConfig | null;
  readonly streamsPerAccountMax: number;
  readonly streamPingMs: number;
  readonly shutdownGraceMs: number;
  /** null: no repositories can be loaded. */
  readonly git: GitConfig | null;
  readonly slack: SlackConfig;
  /** null: no traces. */
  readonly traces: TracesConfig | null;
  readonly ops: OpsConfig;
  /** Variables that start with HEPH_ and mean nothing: probably misspelt. */
  readonly unknownVariables: readonly string[];
}

function readProvider(read: Reader): ProviderConfig | null {
  const api = read.raw('HEPH_LLM_API');
  const baseUrl = read.url('HEPH_LLM_BASE_URL', ['https:', 'http:']);
  const apiKey = read.raw('HEPH_LLM_API_KEY');
  const model = read.raw('HEPH_LLM_MODEL');
  const contextTokens = read.integer('HEPH_LLM_CONTEXT_TOKENS', 128_000, [SMALLEST_MODEL.contextTokens, 10_000_000]);
  const outputTokens = read.integer('HEPH_LLM_OUTPUT_TOKENS', 8_192, [SMALLEST_MODEL.outputTokens, 1_000_000]);
  const price = readPrice(read);
  if (api === null && baseUrl === null && apiKey === null && model === null) return null;
  const missing = Object.entries({ HEPH_LLM_API: api, HEPH_LLM_BASE_URL: baseUrl, HEPH_LLM_MODEL: model }).filter(
    ([, value]) => value === null,
  );
  if (api !== null) read.choice('HEPH_LLM_API', 'openai-completions', LLM_APIS);
  for (const [name] of missing) {
    read.problems.push(
      `${name} is not set, but another HEPH_LLM_ variable is. Set HEPH_LLM_API, HEPH_LLM_BASE_URL and HEPH_LLM_MODEL, or none.`,
    );
  }
  if (baseUrl?.search || baseUrl?.hash) read.bad('HEPH_LLM_BASE_URL', baseUrl.origin, 'a URL without a query and without a fragment');
  if (!baseUrl || api === null || model === null) return null;
  return { api: api as LlmApi, baseUrl, apiKey, model, contextTokens, outputTokens, price };
}

function readPrice(read: Reader): ProviderConfig['price'] {
  const input = read.decimal('HEPH_LLM_INPUT_PRICE');
  const output = read.decimal('HEPH_LLM_OUTPUT_PRICE');
  if (input !== null && output !== null) return { input, output };
  if (input !== output) {
    const [set, missing] = input === null ? ['OUTPUT', 'INPUT'] : ['INPUT', 'OUTPUT'];
    read.problems.push(`HEPH_LLM_${set}_PRICE is set and HEPH_LLM_${missing}_PRICE is not. Set both (per million tokens), or neither.`);
  }
  return null;
}

const MIB = 1024 * 1024;

function readGit(read: Reader, searchPath = '/usr/local/bin:/usr/bin:/bin'): GitConfig | null {
  const enabled = read.boolean('HEPH_GIT_CHECKOUT_ENABLED', true);
  const bytes = (name: string, fallback: number): number => read.integer(name, fallback, [MIB, 1024 * 1024 * MIB]);
  const git = {
    program: read.text('HEPH_GIT_PROGRAM', 'git', 4_000),
    searchPath,
    allowFile: read.boolean('HEPH_GIT_ALLOW_FILE', false),
    allowPrivate: read.boolean('HEPH_GIT_ALLOW_PRIVATE', false),
    freshMs: read.durationMs('HEPH_GIT_FRESH', '60s', ['0ms', '1d']),
    snapshotMaxBytes: bytes('HEPH_GIT_MAX_SNAPSHOT_BYTES', 512 * MIB),
    mirrorMaxBytes: bytes('HEPH_GIT_MAX_MIRROR_BYTES', 2048 * MIB),
    archivesMaxBytes: bytes('HEPH_GIT_MAX_ARCHIVES_BYTES', 2048 * MIB),
  };
  return enabled ? git : null;
}

function readTimeZone(read: Reader): string {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zone = read.text('HEPH_TIME_ZONE', own || 'UTC');
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
  } catch {
    read.bad('HEPH_TIME_ZONE', zone, 'an IANA time zone, for example Europe/Berlin');
  }
  return zone;
}

/** Who can reach the server, and what may run there. */
function checkReach(
  read: Reader,
  { auth, bindHost, sandboxAllowUnisolated }: Pick<Config, 'auth' | 'bindHost' | 'sandboxAllowUnisolated'>,
): void {
  if (auth.kind === 'oidc') {
    if (!sandboxAllowUnisolated) return;
    read.bad(
      'HEPH_SANDBOX_ALLOW_UNISOLATED',
      'true',
      'false while HEPH_AUTH is oidc: commands of one person would run beside those of another',
    );
    return;
  }
  if (isLoopbackHost(bindHost)) return;
  read.bad(
    'HEPH_BIND',
    bindHost,
    'a loopback address (127.0.0.1, ::1, localhost) while HEPH_AUTH is local: anybody who reaches the port is the account',
  );
}

/** Reads and checks the environment. Throws one ConfigError with every problem. */
export function readConfig(env: Readonly<Record<string, string | undefined>>, cwd: string): Config {
  const read = new Reader(env);
  const capacityTurns = read.integer('HEPH_AGENT_CAPACITY_TURNS', 4, [0, 10_000]);
  const databaseUrl = read.url('HEPH_DATABASE_URL', ['postgres:', 'postgresql:']);
  const config: Omit<Config, 'unknownVariables'> = {
    bindHost: read.text('HEPH_BIND', '127.0.0.1'),
    port: read.integer('HEPH_PORT', 8080, [0, 65_535]),
    agentPort: read.integer('HEPH_AGENT_PORT', 8081, [0, 65_535]),
    opsPort: read.integer('HEPH_OPS_PORT', 9090, [0, 65_535]),
    dataDir: path.resolve(cwd, read.text('HEPH_DATA_DIR', '.heph', 4_000)),
    databaseUrl: databaseUrl?.toString() ?? null,
    databasePoolMax: read.integer('HEPH_DATABASE_POOL_MAX', 10, [2, 200]),
    redisUrl: read.url('HEPH_REDIS_URL', ['redis:', 'rediss:'])?.toString() ?? null,
    auth: readAuth(read),
    embedOrigins: readEmbedOrigins(read),
    assistantName: read.text('HEPH_ASSISTANT_NAME', 'Hephaestus', 60),
    accountName: read.text('HEPH_ACCOUNT_NAME', 'You', 200),
    timeZone: readTimeZone(read),
    logLevel: read.choice('HEPH_LOG_LEVEL', 'info', ['trace', 'debug', 'info', 'warn', 'error', 'silent']),
    provider: readProvider(read),
    llmAllowPrivate: read.boolean('HEPH_LLM_ALLOW_PRIVATE', false),
    secretKeys: { current: read.secretKey('HEPH_SECRET_KEY'), old: read.secretKey('HEPH_SECRET_KEY_OLD') },
    capacityTurns,
    leaseTtlMs: read.durationMs('HEPH_AGENT_CAPACITY_TURN_LEASE_TTL', '60s', ['1s', '15m']),
    maxFollowUps: read.integer('HEPH_MENTOR_TURN_MAX_FOLLOW_UPS', 10, [1, 500]),
    turnDeadlineMs: read.durationMs('HEPH_MENTOR_TURN_DEADLINE', '5m', ['1s', '15m']),
    modelFirstByteMs: read.durationMs('HEPH_MENTOR_TURN_MODEL_FIRST_BYTE_TIMEOUT', '60s', ['100ms', '15m']),
    modelIdleMs: read.durationMs('HEPH_MENTOR_TURN_MODEL_IDLE_TIMEOUT', '60s', ['100ms', '15m']),
    modelNoContentMs: read.durationMs('HEPH_MENTOR_TURN_MODEL_NO_CONTENT_TIMEOUT', '180s', ['100ms', '15m']),
    sandboxAllowUnisolated: read.boolean('HEPH_SANDBOX_ALLOW_UNISOLATED', false),
    sandboxIsolation: read.choice('HEPH_SANDBOX_ISOLATION', 'auto', ['auto', 'required', 'off']),
    sandboxLimits: {
      memoryMb: read.integer('HEPH_SANDBOX_MEMORY_MB', 1_536, [256, 1_000_000]),
      diskMb: read.integer('HEPH_SANDBOX_DISK_MB', 768, [16, 1_000_000]),
      processes: read.integer('HEPH_SANDBOX_PROCESSES', 256, [32, 100_000]),
      cpus: read.integer('HEPH_SANDBOX_CPUS', 1, [1, 256]),
    },
    sandboxWarm: read.integer('HEPH_SANDBOX_WARM', 2, [0, 50]),
    sandboxesMax: read.integer('HEPH_SANDBOX_MAX', Math.max(4, capacityTurns * 2), [1, 1_000]),
    sandboxIdleMs: read.durationMs('HEPH_SANDBOX_IDLE', '5m', ['100ms', '1d']),
    kubernetes: readKubernetes(read),
    streamsPerAccountMax: read.integer('HEPH_MENTOR_LIVE_STREAMS_PER_ACCOUNT', 10, [1, 1_000]),
    streamPingMs: read.durationMs('HEPH_MENTOR_LIVE_PING', '15s', ['100ms', '5m']),
    shutdownGraceMs: read.durationMs('HEPH_SHUTDOWN_GRACE', '20s', ['0ms', '10m']),
    git: readGit(read, env['PATH']),
    slack: readSlack(read),
    traces: readTraces(read),
    ops: readOps(read),
  };
  checkReach(read, config);
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  const unknownVariables = Object.keys(env).filter(
    (name) => name.startsWith('HEPH_') && !name.startsWith('HEPH_TEST_') && !read.known.has(name),
  );
  return Object.freeze({ ...config, unknownVariables });
}

/** The environment of this process. The only place that looks at it. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}
