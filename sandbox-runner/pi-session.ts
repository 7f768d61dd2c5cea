/**
 * Owns: one Pi session for one attempt: rebuilt in memory from the stored path, hermetic (no file of this machine is read), with our
 * ids, our tools, our way to the model, and the situation as the last message of each model request.
 * Does not own: what the events and entries mean (turn.ts, transcript.ts).
 * One private method of Pi is wrapped (`_appendEntry`), because ids of the ledger must be Pi's ids; runner.spec.ts would notice its loss.
 */
import type { ContextResponse } from '../src/contract/agent.ts';
import { uuidv7 } from '../src/kernel/ids.ts';
import { moveBreakpoint } from './breakpoint.ts';
import { type CompactionPlan, compactionPlan } from './compaction.ts';
import { RUNNER, WORKSPACE_DIR } from './config.ts';
import type { ModelFetches } from './model-fetch.ts';
import {
  type AgentSession,
  type ExtensionFactory,
  pi,
  type ResourceLoader,
  type SessionEntry,
  type SessionManager,
  type ToolDefinition,
} from './pi.ts';
import { describeModel } from './pi-model.ts';
import type { Protocol } from './protocol.ts';
import { noteOlderResults } from './read-notes.ts';
import { Shortener } from './shorten.ts';

/** Pi looks for its own files here and finds none. */
const NOWHERE = '/nonexistent/pi';

export interface PiSessionOptions {
  readonly context: Pick<
    ContextResponse,
    'conversationId' | 'questionEntryId' | 'entries' | 'systemPrompt' | 'situation' | 'model' | 'timeZone'
  >;
  readonly tools: readonly ToolDefinition[];
  readonly fetches: ModelFetches;
  readonly log: Protocol['log'];
  /** Where the gateway is, for example `http://localhost`. */
  readonly origin: string;
}

export interface PiSession {
  readonly session: AgentSession;
  /** Entries that this attempt appended, in order; the question is among them. */
  readonly entries: readonly SessionEntry[];
  /** Shortens the conversation where that is due. Resolves to false when it is too long for the question even then. */
  makeRoom(prompt: string): Promise<boolean>;
  /** Runs the turn. Resolves when Pi is idle, also after a model error or an abort. */
  ask(prompt: string): Promise<void>;
  /** Replaces the results of older turns by notes; call it when Pi is idle and the turn is going to be stored. */
  settle(): void;
  close(): void;
}

/** Opens a session. Throws when the stored path is no chain, or Pi refuses it. */
export async function openPiSession(options: PiSessionOptions): Promise<PiSession> {
  const { context } = options;
  const entries: SessionEntry[] = [];
  const manager = restore(context);
  hookEntries(manager, { questionId: context.questionEntryId, onEntry: (entry) => entries.push(entry) });
  const { runtime, model } = await describeModel(context.model, options.origin);
  const plan = compactionPlan(context.model.contextTokens, context.model.outputTokens);
  const shortener = new Shortener({ plan, fetch: options.fetches.summary, fixedChars: fixedChars(options), log: options.log });
  const extensions = await inlineExtensions([exactPrompt(context.systemPrompt), shortener.extension]);
  const { session } = await pi.createAgentSession({
    cwd: WORKSPACE_DIR,
    agentDir: NOWHERE,
    modelRuntime: runtime,
    model,
    thinkingLevel: 'off',
    sessionManager: manager,
    resourceLoader: hermeticLoader(context.systemPrompt, extensions),
    settingsManager: settings(plan),
    noTools: 'builtin',
    tools: options.tools.map((tool) => tool.name),
    customTools: [...options.tools],
  });
  await session.bindExtensions({ mode: 'print' });
  shortener.attach(session);
  sendThrough(session, options.fetches.answer);
  addSituation(session, context.situation);
  return {
    session,
    entries,
    makeRoom: (prompt) => shortener.makeRoom(prompt),
    ask: (prompt) => session.prompt(prompt, { expandPromptTemplates: false }),
    settle: () => noteOlderResults(manager, new Set(entries.map((entry) => entry.id)), context.timeZone),
    close: () => session.dispose(),
  };
}

/** Pi takes the last row for the leaf and silently drops everything above a missing parent, so the chain is checked. */
function restore(context: PiSessionOptions['context']): SessionManager {
  const rows = structuredClone(context.entries) as unknown as SessionEntry[];
  const manager = pi.SessionManager.inMemory(WORKSPACE_DIR, { id: context.conversationId }, rows);
  if (rows.length > 0 && manager.getBranch()[0]?.parentId !== null) throw new Error('the stored path is no chain');
  return manager;
}

interface EntryHook {
  readonly questionId: string;
  readonly onEntry: (entry: SessionEntry) => void;
}

/** Each entry gets an id of ours, and the question the one that the server gave it. */
function hookEntries(manager: SessionManager, hook: EntryHook): void {
  const hidden = manager as unknown as { _appendEntry(entry: SessionEntry): void };
  const append = hidden._appendEntry.bind(manager);
  let asked = false;
  hidden._appendEntry = (entry) => {
    const chosenByPi = entry.id;
    const isQuestion = !asked && entry.type === 'message' && entry.message.role === 'user';
    entry.id = isQuestion ? hook.questionId : uuidv7();
    asked ||= isQuestion;
    if (entry.type === 'compaction' && entry.firstKeptEntryId === chosenByPi) entry.firstKeptEntryId = entry.id;
    append(entry);
    hook.onEntry(entry);
  };
}

/** Characters of each request beside the conversation. */
function fixedChars({ context, tools }: PiSessionOptions): number {
  const declared = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  return context.systemPrompt.length + context.situation.length + JSON.stringify(declared).length;
}

function settings(plan: CompactionPlan) {
  return pi.SettingsManager.inMemory({
    // Switched off, Pi would not recover from a provider that finds the conversation too long.
    compaction: { enabled: true, reserveTokens: plan.reserveTokens, keepRecentTokens: plan.keepRecentTokens },
    retry: { enabled: true, maxRetries: RUNNER.modelRetries, baseDelayMs: RUNNER.modelRetryBaseMs },
    // The gateway bounds a model call.
    httpIdleTimeoutMs: 0,
    cacheWarming: 'off',
    enableInstallTelemetry: false,
  });
}

function hermeticLoader(systemPrompt: string, extensions: ReturnType<ResourceLoader['getExtensions']>): ResourceLoader {
  return {
    getExtensions: () => extensions,
    getSkills: () => ({ skills: [], diagnostics: [] }),
    getPrompts: () => ({ prompts: [], diagnostics: [] }),
    getThemes: () => ({ themes: [], diagnostics: [] }),
    getAgentsFiles: () => ({ agentsFiles: [] }),
    getSystemPrompt: () => systemPrompt,
    getSystemPromptSource: () => undefined,
    getAppendSystemPrompt: () => [],
    getAppendSystemPromptSources: () => [],
    extendResources: () => undefined,
    reload: () => Promise.resolve(),
  };
}

async function inlineExtensions(extensionFactories: ExtensionFactory[]): Promise<ReturnType<ResourceLoader['getExtensions']>> {
  const loader = new pi.DefaultResourceLoader({
    cwd: NOWHERE,
    agentDir: NOWHERE,
    settingsManager: pi.SettingsManager.inMemory(),
    extensionFactories,
    noExtensions: true,
    noSkills: true,
    noPromptTemplates: true,
    noThemes: true,
    noContextFiles: true,
    systemPrompt: '-',
    appendSystemPrompt: [],
  });
  await loader.reload();
  const extensions = loader.getExtensions();
  if (extensions.errors.length > 0) throw new Error('an inline extension does not load');
  return extensions;
}

/** The model gets exactly this text. Without it Pi appends a section about the working directory. */
function exactPrompt(systemPrompt: string): ExtensionFactory {
  return (api) => {
    api.on('before_agent_start', () => ({ systemPrompt }));
  };
}

/** Every request of the session leaves through this fetch, unless it brings its own (a summary does). */
function sendThrough(session: AgentSession, fetch: typeof globalThis.fetch): void {
  const { agent } = session;
  const stream = agent.streamFunction;
  agent.streamFunction = (model, context, options) => stream(model, context, { fetch, ...options });
}

/** Last in each request and stored nowhere. A cache breakpoint that Pi puts on it moves to the message before. */
function addSituation(session: AgentSession, situation: string): void {
  const { agent } = session;
  const transform = agent.transformContext;
  agent.transformContext = async (messages, signal) => {
    const transformed = transform === undefined ? messages : await transform(messages, signal);
    return [...transformed, { role: 'user', content: [{ type: 'text', text: situation }], timestamp: Date.now() }];
  };
  const onPayload = agent.onPayload;
  agent.onPayload = async (payload, model) => moveBreakpoint((await onPayload?.(payload, model)) ?? payload);
}
