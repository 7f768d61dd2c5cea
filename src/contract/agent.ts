/**
 * Owns: the agent wire (DESIGN section 6): what a sandbox and the agent listener say to each other.
 * Each run call carries the credential (`Authorization: Bearer …`), `X-Agent-Run` and `X-Agent-Epoch`.
 * Rule R5: the server checks run and epoch in the transaction of each write; a schema here is never the guarantee.
 */
import { z } from 'zod';
import { idSchema, stopReasonSchema } from './common.ts';
import { LIMITS } from './limits.ts';

export const AGENT_RUN_HEADER = 'x-agent-run';
export const AGENT_EPOCH_HEADER = 'x-agent-epoch';

export const nextRequestSchema = z.object({ waitMs: z.number().int().min(0).max(LIMITS.pullWaitMaxMs) });

/** All times are remaining durations, never times of day: the two clocks need not agree. */
export const runSchema = z.object({
  id: idSchema,
  kind: z.enum(['TURN', 'DIGEST']),
  epoch: z.number().int(),
  leaseTtlMs: z.number().int(),
  renewEveryMs: z.number().int(),
  deadlineMs: z.number().int(),
  /** Sent with each call of the attempt when the server traces it (W3C Trace Context). */
  traceparent: z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
    .optional(),
});
export type AgentRun = z.infer<typeof runSchema>;
export const nextResponseSchema = z.object({ run: runSchema });

export const LLM_APIS = ['openai-completions', 'openai-responses', 'anthropic-messages'] as const;
export const llmApiSchema = z.enum(LLM_APIS);
export type LlmApi = z.infer<typeof llmApiSchema>;

/** The model as admission froze it. The name is ours: the gateway writes the provider's own name into each call. */
export const agentModelSchema = z.object({
  id: z.string(),
  api: llmApiSchema,
  contextTokens: z.number().int(),
  outputTokens: z.number().int(),
});
export type AgentModel = z.infer<typeof agentModelSchema>;

/**
 * A Pi session entry, verbatim. The server reads only what it must (type, ids, message role) and stores the rest as it came.
 */
export const piEntrySchema = z.looseObject({
  type: z.string().min(1).max(64),
  id: z.string().min(1).max(64),
  parentId: z.string().nullable(),
  timestamp: z.string(),
});
export type PiEntry = z.infer<typeof piEntrySchema>;

/**
 * What an attempt is told. The question is whole, never cut. What it needs beside the path (question, system prompt, tools, room to answer) is
 * known to the loop in tokens: a turn that cannot fit its model's window ends FAILED with `context_overflow` before any model call. A path over
 * `LIMITS.pathMaxBytes` is not given out: the server ends the turn so itself, and the call is answered 409 MENTOR_LEASE_LOST.
 */
export const contextResponseSchema = z.object({
  conversationId: idSchema,
  turnId: idSchema,
  questionEntryId: idSchema,
  /** The stored path in append order, re-linked. The last row is the leaf. */
  entries: z.array(piEntrySchema),
  /** What the loop must pass to `session.prompt()` unchanged. */
  prompt: z.string(),
  systemPrompt: z.string(),
  /** Added as the last message of each model request and never stored. */
  situation: z.string(),
  model: agentModelSchema,
  /** IANA name of the account's zone: times that the loop writes for the model. A server of an older release does not say. */
  timeZone: z.string().default('UTC'),
  /** A tar archive of the fixed documents, Base64. */
  documents: z.string(),
});
export type ContextResponse = z.infer<typeof contextResponseSchema>;

/** The reply to a renewal. `stop` is set during the grace after a stop or a deadline. */
export const leaseResponseSchema = z.object({
  leaseTtlMs: z.number().int(),
  deadlineMs: z.number().int(),
  stop: stopReasonSchema.optional(),
});
export type LeaseResponse = z.infer<typeof leaseResponseSchema>;

/**
 * What has been written since the last report. `offset` is the length (UTF-16 units) of everything reported before.
 * `full: true` says that `text` is the whole answer so far and `offset` is 0.
 */
export const partialRequestSchema = z.object({
  offset: z.number().int().min(0).max(LIMITS.partialMaxChars),
  text: z.string().max(LIMITS.partialMaxChars),
  stage: z.string().max(LIMITS.stageMaxChars).nullable(),
  full: z.boolean().optional(),
  /** The n-th report of this attempt, from 1: servers tell each other of reports, and one may overtake another. */
  nth: z.number().int().min(1).optional(),
});
export type PartialRequest = z.infer<typeof partialRequestSchema>;
/** `resync`: this server has not seen the earlier deltas; send the whole text next time. */
export const partialResponseSchema = z.object({ resync: z.boolean().optional(), stop: stopReasonSchema.optional() });
export type PartialResponse = z.infer<typeof partialResponseSchema>;

/** `turn/search`: where to look. `thread` is the conversation of the turn, `tree` the main conversation and all of its threads. */
export const searchScopeSchema = z.enum(['main', 'thread', 'tree']);
export type SearchScope = z.infer<typeof searchScopeSchema>;
export const searchRequestSchema = z.object({ query: z.string().min(1).max(LIMITS.searchQueryMaxChars), scope: searchScopeSchema });
export type SearchRequest = z.infer<typeof searchRequestSchema>;
/** Questions, answers and digests only; best first. */
export const searchHitSchema = z.object({
  entryId: idSchema,
  conversationId: idSchema,
  kind: z.enum(['question', 'answer', 'digest']),
  /** In the account's time zone, with weekday and zone. */
  at: z.string(),
  /** The words around the match, cut on a code point boundary. */
  text: z.string(),
});
export type SearchHit = z.infer<typeof searchHitSchema>;
export const searchResponseSchema = z.object({ hits: z.array(searchHitSchema).max(LIMITS.searchHitsMax), truncated: z.boolean() });
export type SearchResponse = z.infer<typeof searchResponseSchema>;

/** `turn/sandbox/document`: one item document, by its path in the context folder. 404 DOCUMENT_NOT_FOUND: no source has it. */
export const documentRequestSchema = z.object({ path: z.string().min(1).max(LIMITS.documentPathMaxChars) });
export const documentResponseSchema = z.object({ path: z.string(), content: z.string() });
export type DocumentResponse = z.infer<typeof documentResponseSchema>;

/**
 * `turn/sandbox/load`: prepares a heavy item (a repository). The answer's body is a tar archive; its manifest is in the header
 * `x-heph-load`, as base64url of JSON, so that the sandbox can check what it is about to read.
 */
export const LOAD_HEADER = 'x-heph-load';
export const loadRequestSchema = z.object({ path: z.string().min(1).max(LIMITS.documentPathMaxChars) });
export const loadManifestSchema = z.object({
  /** Where the archive is extracted, relative to the context folder, for example `repos/heph`. An earlier load there is replaced. */
  directory: z.string().min(1).max(LIMITS.documentPathMaxChars),
  /** What was resolved, for example a commit id. */
  version: z.string().min(1).max(200),
  bytes: z.number().int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Program and arguments that the sandbox runs in the directory to tell the model what it has, or null. Never a shell line. */
  summary: z.array(z.string().max(1_000)).min(1).max(32).nullable(),
  /** Files that the archive leaves out, because no archive of ours may hold their names. */
  omittedFiles: z.number().int().min(1).optional(),
});
export type LoadManifest = z.infer<typeof loadManifestSchema>;

/** The closed set of failure details. Anything else is logged as `unrecognized`. */
export const FAILURE_DETAILS = [
  'model_error',
  'empty_answer',
  'call_limit',
  'context_overflow',
  'context_unavailable',
  'end_refused',
  'end_too_large',
  'loop_crashed',
  'truncated_answer',
] as const;
export type FailureDetail = (typeof FAILURE_DETAILS)[number];

export const turnEndRequestSchema = z.object({
  outcome: z.enum(['DONE', 'STOPPED', 'FAILED']),
  /** Only with FAILED: who or what ended the attempt. */
  reason: z.enum(['ERROR', 'STALLED', 'DEADLINE']).optional(),
  detail: z.string().max(64).optional(),
  entries: z.array(piEntrySchema).max(LIMITS.entriesPerEndMax),
  /** The last partial answer that this attempt published; readers saw it. */
  lastPartial: z
    .object({ text: z.string().max(LIMITS.partialMaxChars), stage: z.string().max(LIMITS.stageMaxChars).nullable() })
    .nullable(),
});
export type TurnEndRequest = z.infer<typeof turnEndRequestSchema>;

/**
 * `POST end`. `HANDED_ON`: a graceful stop of the sandbox; the attempt is given back. `COMPLETED`: the driver is through with the run;
 * a completed run without a completed turn fails that turn.
 */
export const runEndRequestSchema = z.object({ outcome: z.enum(['COMPLETED', 'HANDED_ON']) });
export type RunEndRequest = z.infer<typeof runEndRequestSchema>;

/** First line on a runner's standard input, one JSON object. Environment and arguments never carry a secret. */
export const runnerAssignmentSchema = z.object({
  /** Unix socket path or `http://127.0.0.1:port` of the agent listener. */
  gateway: z.string(),
  credential: z.string(),
  conversationId: idSchema,
  /** Whether the bash tool may run here. */
  bash: z.boolean(),
  /** Folder that stands for `/workspace/work` on this machine. */
  workDir: z.string(),
});
export type RunnerAssignment = z.infer<typeof runnerAssignmentSchema>;
/** Later lines on a runner's standard input. `drain`: hand the run on and go. The end of the input means: go at once. */
export const runnerCommandSchema = z.object({ type: z.literal('drain') });
export type RunnerCommand = z.infer<typeof runnerCommandSchema>;
/** One JSON object per line on the runner's standard output: its whole vocabulary. */
export const runnerReportSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready') }),
  z.object({ type: z.literal('idle') }),
  z.object({ type: z.literal('busy'), runId: idSchema, epoch: z.number().int() }),
  z.object({
    type: z.literal('log'),
    level: z.enum(['debug', 'info', 'warn', 'error']),
    event: z.string().max(64),
    fields: z.record(z.string(), z.union([z.string().max(200), z.number(), z.boolean(), z.null()])),
  }),
]);
export type RunnerReport = z.infer<typeof runnerReportSchema>;
