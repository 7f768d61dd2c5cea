/**
 * Owns: the model of an attempt as Pi sees it.
 * Does not own: credentials and the way out. Pi's provider holds a placeholder; a session brings its own fetch (pi-session.ts), and
 * model-fetch.ts puts the real proof on each request.
 */
import type { AgentModel, LlmApi } from '../src/contract/agent.ts';
import { pi } from './pi.ts';

const PROVIDER = 'heph';

type Runtime = Awaited<ReturnType<typeof pi.ModelRuntime.create>>;
type RuntimeOptions = NonNullable<Parameters<typeof pi.ModelRuntime.create>[0]>;
type CredentialStore = NonNullable<RuntimeOptions['credentials']>;
type ModelsStore = NonNullable<RuntimeOptions['modelsStore']>;
type Model = NonNullable<ReturnType<Runtime['getModel']>>;
type ModelDescription = NonNullable<Parameters<Runtime['registerProvider']>[1]['models']>[number];

/** The path of the gateway for each API. Anthropic's client adds `/v1` itself. */
const BASE_PATHS: Record<LlmApi, string> = {
  'openai-completions': '/internal/llm/v1',
  'openai-responses': '/internal/llm/v1',
  'anthropic-messages': '/internal/llm',
};

/** What an unknown OpenAI-compatible server understands. The other APIs keep Pi's choice. */
const COMPAT = { supportsStore: false, supportsDeveloperRole: false, maxTokensField: 'max_tokens' } as const;

/** What the provider lists: the model of the last session only. Pi reads the list anew each time. */
const described: ModelDescription[] = [];
let runtime: Promise<Runtime> | null = null;

/**
 * The model as Pi takes it. One runtime serves the process, because opening one goes through a catalog of some thousand models.
 * `origin`: where the gateway is, for example `http://localhost`.
 */
export async function describeModel(wanted: AgentModel, origin: string): Promise<{ readonly runtime: Runtime; readonly model: Model }> {
  runtime ??= openRuntime(origin);
  described.splice(0, described.length, describe(wanted, origin));
  const opened = await runtime;
  const model = opened.getModel(PROVIDER, wanted.id);
  if (model === undefined) throw new Error('Pi does not know the model');
  return { runtime: opened, model };
}

/** No file and no network is touched. */
async function openRuntime(origin: string): Promise<Runtime> {
  const opened = await pi.ModelRuntime.create({
    credentials: noCredentials,
    modelsPath: null,
    modelsStore: noCatalogs,
    refreshOnCreate: false,
  });
  opened.registerProvider(PROVIDER, { apiKey: 'placeholder', baseUrl: origin, models: described });
  return opened;
}

function describe(model: AgentModel, origin: string): ModelDescription {
  return {
    id: model.id,
    name: model.id,
    api: model.api,
    baseUrl: origin + BASE_PATHS[model.api],
    reasoning: false,
    input: ['text'],
    // The gateway counts and prices each call.
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: model.contextTokens,
    maxTokens: model.outputTokens,
    ...(model.api === 'openai-completions' ? { compat: COMPAT } : {}),
  };
}

const noCredentials: CredentialStore = {
  read: () => Promise.resolve(undefined),
  list: () => Promise.resolve([]),
  modify: () => Promise.resolve(undefined),
  delete: () => Promise.resolve(),
};

const noCatalogs: ModelsStore = {
  read: () => Promise.resolve(undefined),
  write: () => Promise.resolve(),
  delete: () => Promise.resolve(),
};
