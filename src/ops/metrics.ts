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
  attemptTakenBack(cause: RecoveryCause): void;
  /** A call of an attempt that has lost its run. */
  fencingRejected(): void;
  /** `failed`: the sandbox could not be started, or died before it was given a run. */
  sandboxStart(outcome: 'started' | 'failed'): void;
  /** A path did not start as the one before it (rule R13); `system`: only the system prompt is another one. */
  pathBroken(part: 'path' | 'system'): void;
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
  const recoveries = new Counter({
    ...{ name: 'heph_recoveries_total', help: 'Attempts that were taken back.', labelNames: ['cause'], registers },
  });
  const expirations = new Counter({ name: 'heph_lease_expirations_total', help: 'Leases that ran out.', registers });
  const rejections = new Counter({ name: 'heph_fencing_rejections_total', help: 'Calls of attempts that had lost their run.', registers });
  const starts = new Counter({
    ...{ name: 'heph_sandbox_starts_total', help: 'Sandboxes that were started, or could not be.', labelNames: ['outcome'], registers },
  });
  const tokens = new Counter({
    ...{ name: 'heph_model_tokens_total', help: 'Tokens of model calls.', labelNames: ['model', 'kind'], registers },
  });
  const bytesOf = new Counter({
    ...{ name: 'heph_model_answer_bytes_total', help: 'Bytes of answers of models that were passed on.', labelNames: ['model'], registers },
  });
  const renewals = new Counter({
    ...{ name: 'heph_lease_renewals_total', help: 'Renewals of leases.', labelNames: ['outcome'], registers },
  });
  const breaks = new Counter({
    ...{ name: 'heph_path_breaks_total', help: 'Paths that changed without a declared reason.', labelNames: ['part'], registers },
  });
  const outcomes = new Counter({
    ...{
      name: 'heph_outbox_outcomes_total',
      help: 'What became of attempts to post, and of readings.',
      labelNames: ['outcome'],
      registers,
    },
  });
  for (const part of ['path', 'system']) breaks.inc({ part }, 0);
  return {
    contentType: registry.contentType,
    metrics: () => registry.metrics(),
    kernelObserver: createKernelObserver(registry),
    observeRequest({ route, method, status, durationMs }) {
      requests.observe({ route, method: knownMethod(method), code: status }, durationMs / 1_000);
    },
    watch: (sources) => registerGauges(registry, sources),
    turnEnded: turnMetrics(registry),
    attemptTakenBack(cause) {
      recoveries.inc({ cause });
      if (cause === 'lease') expirations.inc();
    },
    fencingRejected: () => rejections.inc(),
    sandboxStart: (outcome) => starts.inc({ outcome }),
    outboxOutcome: (outcome) => outcomes.inc({ outcome }),
    pathBroken: (part) => breaks.inc({ part }),
    leaseRenewed: (outcome) => renewals.inc({ outcome }),
    modelUsed(model, usage, bytes = 0) {
      bytesOf.inc({ model }, bytes);
      const { inputTokens: input, outputTokens: output, cacheReadTokens: cache_read, cacheWriteTokens: cache_write } = usage;
      for (const [kind, count] of Object.entries({ input, output, cache_read, cache_write })) tokens.inc({ model, kind }, count ?? 0);
    },
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
