/**
 * Owns: what becomes a span, and where it hangs: turn > wait, attempts > model calls, tool calls, calls to the server. A span is made when its
 * work is over, by whoever saw it end, from what that one knows already; nothing on the way of a turn waits for it, and nothing throws.
 * Rule: ids, names of ours, counts, durations and outcomes; never words. Attribute names are those of OpenTelemetry's GenAI conventions where
 * there is one, `heph.` else.
 * Does not own: how spans leave (otlp.ts).
 */
import { randomBytes } from 'node:crypto';
import type { EndedAttemptReport, EndedTurnReport } from '../../actors/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { isUuid } from '../kernel/ids.ts';
import { attemptSpanId, callSpanId, traceIdOf, turnSpanId, waitSpanId } from './ids.ts';

/** Which part of the system a span tells of. */
export type SpanScope = 'heph.server' | 'heph.gateway' | 'heph.sandbox';
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Span {
  readonly scope: SpanScope;
  readonly kind: 'server' | 'client' | 'internal';
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** null: the root. */
  readonly parentId: string | null;
  /** Milliseconds since the Unix epoch, by the clock of who tells. */
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
  readonly attributes: Attributes;
  /** A span of the same trace that came before. */
  readonly linkId?: string;
}

export interface SpanSink {
  /** Takes a span, or drops it when there are too many. Never throws, never waits. */
  add(span: Span): void;
  /** Sends what is left for at most `graceMs`. Never rejects. */
  stop(graceMs: number): Promise<void>;
}

/** A model call that has ended, as the gateway tells it. */
export interface TracedCall {
  readonly callId: string;
  readonly turnId: string;
  readonly runId: string;
  readonly epoch: number;
  readonly conversationId: string;
  /** The wire. */
  readonly api: string;
  readonly builtIn: boolean;
  /** The provider's name of it. */
  readonly model: string;
  readonly outcome: string;
  readonly httpStatus: number | null;
  readonly durationMs: number;
  readonly usage: {
    readonly inputTokens: number | null;
    readonly outputTokens: number | null;
    readonly cacheReadTokens: number | null;
    readonly cacheWriteTokens: number | null;
  };
}

/** A request of an attempt, as the agent listener tells it. */
export interface TracedRequest {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  readonly attempt?: { readonly runId: string; readonly epoch: number };
}

type ReportFields = Readonly<Record<string, string | number | boolean | null>>;

export interface TracerOptions {
  readonly sink: SpanSink;
  readonly clock: Clock;
  /** Every server must answer alike for a trace: it depends on the id alone. */
  readonly isSampled: (traceId: string) => boolean;
  readonly agentName: string;
}

/** Calls of an attempt that are spans; a renewal and a partial are a heartbeat, and a model call is the gateway's. */
const TRACED_ROUTES = /\/runs\/:runId\/(context|end|turn\/(end|search|sandbox\/(document|load)))$/;
const TOOLS = new Set(['read', 'bash', 'load_context', 'search_conversation', 'unknown']);
const ERROR_STATUS = 400;
const SPAN_ID_BYTES = 8;

export class TurnTracer {
  readonly #options: TracerOptions;

  constructor(options: TracerOptions) {
    this.#options = options;
  }

  /** What a sandbox sends with the calls of this attempt (W3C Trace Context), so that what stands in between can join; null: not sampled. */
  traceparent({ id, epoch }: { readonly id: string; readonly epoch: number }): string | null {
    const traceId = traceIdOf(id);
    return this.#options.isSampled(traceId) ? `00-${traceId}-${attemptSpanId(id, epoch)}-01` : null;
  }

  turnEnded(turn: EndedTurnReport): void {
    const { runId, queueWaitMs, ageMs, surface, outcome } = turn;
    const ids = namesOf(turn);
    const root = turnSpanId(runId);
    const sinceMs = this.#options.clock.now() - ageMs;
    this.#add(runId, {
      ...{ scope: 'heph.server', kind: 'server', name: 'turn', spanId: root, parentId: null, durationMs: ageMs },
      failed: outcome === 'FAILED',
      attributes: { ...ids, 'heph.turn.surface': surface, 'heph.turn.outcome': outcome },
    });
    if (queueWaitMs === null) return;
    this.#add(runId, {
      ...{ scope: 'heph.server', kind: 'internal', name: 'wait for a slot and a sandbox', spanId: waitSpanId(runId), parentId: root },
      ...{ durationMs: queueWaitMs, endMs: sinceMs + queueWaitMs, failed: false, attributes: ids },
    });
  }

  attemptEnded(attempt: EndedAttemptReport): void {
    const { runId, epoch, how, ageMs } = attempt;
    const { agentName } = this.#options;
    this.#add(runId, {
      ...{ scope: 'heph.server', kind: 'internal', name: `invoke_agent ${agentName}`, spanId: attemptSpanId(runId, epoch) },
      ...{ parentId: turnSpanId(runId), durationMs: ageMs ?? 0, failed: !['DONE', 'STOPPED', 'handed-on'].includes(how) },
      attributes: {
        ...namesOf(attempt),
        ...{ 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': agentName },
        ...{ 'heph.attempt.epoch': epoch, 'heph.attempt.outcome': how },
      },
      ...(epoch > 1 ? { linkId: attemptSpanId(runId, epoch - 1) } : {}),
    });
  }

  modelCall(call: TracedCall): void {
    const { runId, epoch, outcome, model, usage, httpStatus } = call;
    const given = [usage.inputTokens, usage.cacheReadTokens, usage.cacheWriteTokens].filter((tokens) => tokens !== null);
    this.#add(runId, {
      ...{ scope: 'heph.gateway', kind: 'client', name: `chat ${model}`, spanId: callSpanId(call.callId) },
      ...{ parentId: attemptSpanId(runId, epoch), durationMs: call.durationMs, failed: outcome !== 'ok' },
      attributes: {
        ...namesOf(call),
        ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': providerOf(call), 'gen_ai.request.model': model },
        // Theirs counts what a cache gave, ours does not.
        'gen_ai.usage.input_tokens': given.length > 0 ? given.reduce((sum, tokens) => sum + tokens, 0) : undefined,
        'gen_ai.usage.output_tokens': usage.outputTokens ?? undefined,
        'gen_ai.usage.cache_read.input_tokens': usage.cacheReadTokens ?? undefined,
        'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens ?? undefined,
        'http.response.status_code': httpStatus ?? undefined,
        'error.type': outcome === 'ok' ? undefined : outcome,
        ...{ 'heph.call.id': call.callId, 'heph.call.outcome': outcome, 'heph.attempt.epoch': epoch },
      },
    });
  }

  /** A line that a runner has said (sandbox-runner/host). It comes from a sandbox: only what is expected of it becomes a span. */
  runnerSaid(event: string, { runId, epoch, tool, outcome, durationMs }: ReportFields): void {
    if (event !== 'tool_call' || !isUuid(runId) || typeof epoch !== 'number' || !Number.isSafeInteger(epoch)) return;
    if (typeof tool !== 'string' || !TOOLS.has(tool) || typeof durationMs !== 'number' || !(durationMs >= 0)) return;
    const failed = outcome !== 'ok';
    this.#add(runId, {
      ...{ scope: 'heph.sandbox', kind: 'internal', name: `execute_tool ${tool}`, spanId: randomBytes(SPAN_ID_BYTES).toString('hex') },
      ...{ parentId: attemptSpanId(runId, epoch), durationMs, failed },
      attributes: {
        ...{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool, 'gen_ai.tool.type': 'function' },
        ...{ 'heph.run.id': runId, 'heph.attempt.epoch': epoch, 'error.type': failed ? 'tool_error' : undefined },
      },
    });
  }

  request({ route, method, status, durationMs, attempt }: TracedRequest): void {
    if (!attempt || !TRACED_ROUTES.test(route)) return;
    const { runId, epoch } = attempt;
    this.#add(runId, {
      ...{ scope: 'heph.server', kind: 'server', name: `${method} ${route}`, spanId: randomBytes(SPAN_ID_BYTES).toString('hex') },
      ...{ parentId: attemptSpanId(runId, epoch), durationMs, failed: status >= ERROR_STATUS },
      attributes: {
        ...{ 'http.request.method': method, 'http.route': route, 'http.response.status_code': status },
        ...{ 'heph.run.id': runId, 'heph.attempt.epoch': epoch },
      },
    });
  }

  stop(graceMs: number): Promise<void> {
    return this.#options.sink.stop(graceMs);
  }

  #add(
    runId: string,
    {
      durationMs,
      endMs = this.#options.clock.now(),
      ...span
    }: Omit<Span, 'traceId' | 'startMs' | 'endMs'> & {
      readonly durationMs: number;
      readonly endMs?: number;
    },
  ): void {
    const traceId = traceIdOf(runId);
    if (this.#options.isSampled(traceId)) this.#options.sink.add({ ...span, traceId, startMs: endMs - durationMs, endMs });
  }
}

function namesOf({ conversationId, turnId, runId }: Pick<TracedCall, 'conversationId' | 'turnId' | 'runId'>): Attributes {
  return { 'gen_ai.conversation.id': conversationId, 'heph.turn.id': turnId, 'heph.run.id': runId };
}

/** Who is behind a wire is not known here, only which one it is compatible with. */
function providerOf({ api, builtIn }: TracedCall): string {
  if (builtIn) return 'heph.demo';
  return api === 'anthropic-messages' ? 'anthropic' : 'openai';
}
