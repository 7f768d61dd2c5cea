/**
 * Owns: the registry of this process and the metrics that other parts write into. Prefix `heph_`, base units, labels from closed sets.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { KernelObserver } from '../../actors/index.ts';
import type { Surface, TurnStatus } from '../contract/common.ts';
import { LONG_SECONDS, SHORT_SECONDS } from './buckets.ts';
import { type GaugeSources, registerGauges } from './gauges.ts';
import { createKernelObserver } from './kernel-metrics.ts';

/** One HTTP request, as src/http reports it. */
export interface RequestSample {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
}

/** One turn that ended. Durations count from the question; null where there was none. */
export interface TurnSample {
  readonly surface: Surface;
  readonly outcome: Exclude<TurnStatus, 'QUEUED' | 'RUNNING'>;
  readonly queueWaitMs: number | null;
  readonly firstOutputMs: number | null;
  readonly durationMs: number;
}

/** Tokens of one call; null: the provider did not say. `inputTokens` were in no cache. */
export interface UsageSample {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cacheReadTokens: number | null;
  readonly cacheWriteTokens: number | null;
}

/** Why an attempt was taken back. */
export type RecoveryCause = 'lease' | 'sandbox' | 'deadline';

const SPAN_OUTCOMES = ['exported', 'failed', 'dropped'] as const;
export type SpanOutcome = (typeof SPAN_OUTCOMES)[number];

/** States that an attempt to say something in Slack leaves its action in. */
const SETTLEMENTS = ['SENT', 'RETRY', 'UNCERTAIN', 'PARKED', 'DEAD'];

export interface Metrics {
  readonly contentType: string;
  /** Everything, in Prometheus' text format. */
  metrics(): Promise<string>;
  /** For createActors. */
  readonly kernelObserver: KernelObserver;
  /** For the listeners' `observe`. */
  observeRequest(sample: RequestSample): void;
  /** Registers what is read at a scrape; once, when its sources exist. */
  watch(sources: GaugeSources): void;
  turnEnded(sample: TurnSample): void;
  /** Nothing of it is a metric: how long an attempt took is a span (src/traces). */
  attemptEnded(): void;
  attemptTakenBack(cause: RecoveryCause): void;
  /** A call of an attempt that has lost its run. */
  fencingRejected(): void;
  /** `failed`: the sandbox could not be started, or died before it was given a run. */
  sandboxStart(outcome: 'started' | 'failed'): void;
  /** A path did not start as the one before it (rule R13); `system`: only the system prompt is another one. */
  pathBroken(part: 'path' | 'system'): void;
  /** Words were erased. */
  erased(what: 'entry' | 'content'): void;
  /** What became of spans: `dropped` before the collector was asked, `failed` by it. */
  spans(outcome: SpanOutcome, count: number): void;
  /** What became of an attempt to say something in Slack. */
  outboxOutcome(outcome: string): void;
  /** `lost`: the attempt had lost its run. */
  leaseRenewed(outcome: 'renewed' | 'lost'): void;
  /** What a call of this model used, as far as its provider said it: `cache_read` beside `input` is the hit rate of its cache. `bytes`: of its answer. */
  modelUsed(model: string, usage: UsageSample, bytes?: number): void;
}

/** Gauges that prom-client names like counters (promtool refuses them). */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];
const PREFIX = 'heph_';

/** `build`: which program this is. */
export function createMetrics(build = 'unknown'): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: PREFIX });
  for (const name of MISNAMED) registry.removeSingleMetric(`${PREFIX}${name}`);
  const registers = [registry];
  new Gauge({ name: 'heph_build_info', help: 'Which program this is; always 1.', labelNames: ['build'], registers }).set({ build }, 1);
  const requests = new Histogram({
    ...{ name: 'heph_http_request_duration_seconds', help: 'Time to answer a request (to the first byte of a stream).', registers },
    ...{ labelNames: ['route', 'method', 'code'], buckets: SHORT_SECONDS },
  });
  const counter = counters(registry);
  const expirations = new Counter({ name: 'heph_lease_expirations_total', help: 'Leases that ran out.', registers });
  const rejections = new Counter({ name: 'heph_fencing_rejections_total', help: 'Calls of attempts that had lost their run.', registers });
  const recoveries = counter('heph_recoveries_total', 'Attempts that were taken back.', { cause: ['lease', 'sandbox', 'deadline'] });
  const starts = counter('heph_sandbox_starts_total', 'Sandboxes that were started, or could not be.', { outcome: ['started', 'failed'] });
  const renewals = counter('heph_lease_renewals_total', 'Renewals of leases.', { outcome: ['renewed', 'lost'] });
  const breaks = counter('heph_path_breaks_total', 'Paths that changed without a declared reason.', { part: ['path', 'system'] });
  const outcomes = counter('heph_outbox_outcomes_total', 'What became of attempts to post, and of readings.', { outcome: SETTLEMENTS });
  const erasures = counter('heph_erasures_total', 'Erasures of words.', { kind: ['entry', 'content'] });
  const spans = counter('heph_trace_spans_total', 'Spans of traces by what became of them.', { outcome: SPAN_OUTCOMES });
  return {
    contentType: registry.contentType,
    metrics: () => registry.metrics(),
    kernelObserver: createKernelObserver(registry),
    observeRequest({ route, method, status, durationMs }) {
      requests.observe({ route, method: knownMethod(method), code: status }, durationMs / 1_000);
    },
    watch: (sources) => registerGauges(registry, sources),
    turnEnded: turnMetrics(registry),
    attemptEnded: () => {},
    attemptTakenBack(cause) {
      recoveries.inc({ cause });
      if (cause === 'lease') expirations.inc();
    },
    fencingRejected: () => rejections.inc(),
    sandboxStart: (outcome) => starts.inc({ outcome }),
    erased: (kind) => erasures.inc({ kind }),
    spans: (outcome, count) => spans.inc({ outcome }, count),
    outboxOutcome: (outcome) => outcomes.inc({ outcome }),
    pathBroken: (part) => breaks.inc({ part }),
    leaseRenewed: (outcome) => renewals.inc({ outcome }),
    modelUsed: modelMetrics(registry),
  };
}

/** Makes counters with one label. Each series is there from the start: one that began with its first event would hide that event from increase(). */
function counters(registry: Registry) {
  return <L extends string>(name: string, help: string, values: Readonly<Record<L, readonly string[]>>): Counter<L> => {
    const [[label, known]] = Object.entries(values) as [[L, readonly string[]]];
    const counter = new Counter<L>({ name, help, labelNames: [label], registers: [registry] });
    for (const value of known) counter.inc({ [label]: value } as Record<L, string>, 0);
    return counter;
  };
}

function modelMetrics(registry: Registry): Metrics['modelUsed'] {
  const registers = [registry];
  const tokens = new Counter({
    ...{ name: 'heph_model_tokens_total', help: 'Tokens of model calls.', labelNames: ['model', 'kind'], registers },
  });
  const answers = new Counter({
    ...{ name: 'heph_model_answer_bytes_total', help: 'Bytes of answers of models that were passed on.', labelNames: ['model'], registers },
  });
  return (model, usage, bytes = 0) => {
    answers.inc({ model }, bytes);
    const { inputTokens: input, outputTokens: output, cacheReadTokens: cache_read, cacheWriteTokens: cache_write } = usage;
    for (const [kind, count] of Object.entries({ input, output, cache_read, cache_write })) tokens.inc({ model, kind }, count ?? 0);
  };
}

function turnMetrics(registry: Registry): (sample: TurnSample) => void {
  const registers = [registry];
  const histogram = (name: string, help: string) =>
    new Histogram({ name, help, labelNames: ['surface'], registers, buckets: LONG_SECONDS });
  const turns = new Counter({ name: 'heph_turns_total', help: 'Turns that have ended.', labelNames: ['surface', 'outcome'], registers });
  const durations = histogram('heph_turn_duration_seconds', 'From the question to the end of its turn.');
  const waits = histogram('heph_turn_queue_wait_seconds', 'From the question to its first claim.');
  const outputs = histogram('heph_turn_first_output_seconds', 'From the question to the first words of the answer.');
  for (const surface of ['app', 'slack']) for (const outcome of ['DONE', 'FAILED', 'STOPPED']) turns.inc({ surface, outcome }, 0);
  return ({ surface, outcome, queueWaitMs, firstOutputMs, durationMs }) => {
    turns.inc({ surface, outcome });
    durations.observe({ surface }, durationMs / 1_000);
    if (queueWaitMs !== null) waits.observe({ surface }, queueWaitMs / 1_000);
    if (firstOutputMs !== null) outputs.observe({ surface }, firstOutputMs / 1_000);
  };
}

/** A client may send any word as its method; a label may not be any word. */
function knownMethod(method: string): string {
  return ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].includes(method) ? method : 'other';
}
