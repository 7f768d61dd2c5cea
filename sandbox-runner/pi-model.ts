/**
 * Owns: the model of one attempt as Pi sees it: one provider whose every request goes through the fetch that it is given.
 * Does not own: credentials. Pi's provider holds a placeholder; model-fetch.ts puts the real proof on each request.
 */
import type { AgentModel, LlmApi } from '../src/contract/agent.ts';
import { pi } from './pi.ts';

const PROVIDER = 'heph';

type Runtime = Awaited<ReturnType<typeof pi.ModelRuntime.create>>;
type RuntimeOptions = NonNullable<Parameters<typeof pi.ModelRuntime.create>[0]>;
type CredentialStore = NonNullable<RuntimeOptions['credentials']>;
type ModelsStore = NonNullable<RuntimeOptions['modelsStore']>;
type Provider = Parameters<Runtime['registerNativeProvider']>[0];
type Model = NonNullable<ReturnType<Runtime['getModel']>>;

/** The path of the gateway for each API. Anthropic's client adds `/v1` itself. */
const BASE_PATHS: Record<LlmApi, string> = {
  'openai-completions': '/internal/llm/v1',
  'openai-responses': '/internal/llm/v1',
  'anthropic-messages': '/internal/llm',
};

/** What an unknown OpenAI-compatible server understands. The other APIs keep Pi's choice. */
const COMPAT = { supportsStore: false, supportsDeveloperRole: false, maxTokensField: 'max_tokens' } as const;

export interface ModelOptions {
  readonly model: AgentModel;
  readonly fetch: typeof globalThis.fetch;
  /** Where the gateway is, for example `http://localhost`. */
  readonly origin: string;
}

/** A runtime that knows one model. No file and no network is touched. */
export async function createRuntime(options: ModelOptions): Promise<{ runtime: Runtime; model: Model }> {
  const wanted = options.model;
  const runtime = await pi.ModelRuntime.create({
    credentials: noCredentials,
    modelsPath: null,
    modelsStore: noCatalogs,
    refreshOnCreate: false,
  });
  runtime.registerProvider(PROVIDER, {
    apiKey: 'placeholder',
    api: wanted.api,
    baseUrl: options.origin + BASE_PATHS[wanted.api],
    models: [describe(wanted)],
  });
  const provider = runtime.getProvider(PROVIDER);
  if (provider === undefined) throw new Error('Pi does not know the provider');
  runtime.registerNativeProvider(withFetch(provider, options.fetch));
  const model = runtime.getModel(PROVIDER, wanted.id);
  if (model === undefined) throw new Error('Pi does not know the model');
  return { runtime, model };
}

function describe(model: AgentModel) {
  return {
    id: model.id,
    name: model.id,
    reasoning: false,
    input: ['text' as const],
    // The gateway counts and prices each call.
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: model.contextTokens,
    maxTokens: model.outputTokens,
    ...(model.api === 'openai-completions' ? { compat: COMPAT } : {}),
  };
}

function withFetch(provider: Provider, fetch: typeof globalThis.fetch): Provider {
  return {
    ...provider,
    stream: (model, context, options) => provider.stream(model, context, { ...options, fetch } as typeof options),
    streamSimple: (model, context, options) => provider.streamSimple(model, context, { ...options, fetch }),
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
