/**
 * Owns: sending spans to a collector (OTLP over HTTP, JSON), and everything that may go wrong with it: a collector that is down, hangs or refuses
 * costs spans, which are counted, and nothing else. At most QUEUE_MAX spans are in memory, those that are being sent included.
 * The only file that imports OpenTelemetry; server.ts imports it when traces are on.
 */
import { type Link, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  BatchSpanProcessor,
  type ReadableSpan,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { Clock } from '../kernel/clock.ts';
import { pause } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { type Span, type SpanSink, TurnTracer } from './turn-tracer.ts';

export interface TracesOptions {
  /** Where the collector takes traces, `…/v1/traces`. */
  readonly url: URL;
  /** Share of turns, 0 to 1. */
  readonly ratio: number;
  readonly service: { readonly version: string; readonly instanceId: string };
  readonly agentName: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Told what became of spans. */
  readonly onSpans: (outcome: 'exported' | 'failed' | 'dropped', count: number) => void;
}

const QUEUE_MAX = 2_048;
const BATCH_MAX = 256;
const SEND_EVERY_MS = 1_000;
const SEND_MAX_MS = 10_000;
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };
const MS_PER_S = 1_000;
const NS_PER_MS = 1_000_000;
/** W3C: sampled. What is not sampled does not come here. */
const SAMPLED = 1;
const SUCCESS = 0;

export function openTracer({ url, ratio, service, agentName, clock, log, onSpans }: TracesOptions): TurnTracer {
  const sampler = new TraceIdRatioBasedSampler(ratio);
  const all = ratio >= 1;
  const exporter = new OTLPTraceExporter({ url: url.toString(), timeoutMillis: SEND_MAX_MS });
  const attributes = { 'service.name': 'heph', 'service.version': service.version, 'service.instance.id': service.instanceId };
  const sink = new OtlpSink({ exporter, attributes, log, clock, onSpans });
  // The sampler looks at the id only: every server decides alike.
  const isSampled = (traceId: string): boolean =>
    all || sampler.shouldSample(undefined as never, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED;
  return new TurnTracer({ sink, clock, isSampled, agentName });
}

interface SinkOptions extends Pick<TracesOptions, 'clock' | 'log' | 'onSpans'> {
  readonly exporter: SpanExporter;
  readonly attributes: Readonly<Record<string, string>>;
}

/** Exported for its spec. */
export class OtlpSink implements SpanSink {
  readonly #options: SinkOptions;
  readonly #processor: BatchSpanProcessor;
  readonly #resource: ReadableSpan['resource'];
  /** Taken and not yet sent or given up. */
  #held = 0;
  #failing = false;

  constructor(options: SinkOptions) {
    this.#options = options;
    this.#resource = toResource(options.attributes);
    this.#processor = new BatchSpanProcessor({
      exporter: this.#counting(options.exporter),
      ...{
        maxQueueSize: QUEUE_MAX,
        maxExportBatchSize: BATCH_MAX,
        scheduledDelayMillis: SEND_EVERY_MS,
        exportTimeoutMillis: 2 * SEND_MAX_MS,
      },
    });
  }

  add(span: Span): void {
    if (this.#held >= QUEUE_MAX) {
      this.#options.onSpans('dropped', 1);
      return;
    }
    this.#held++;
    this.#processor.onEnd(toReadable(span, this.#resource));
  }

  async stop(graceMs: number): Promise<void> {
    const done = new AbortController();
    const flushed = this.#processor.shutdown().catch(() => undefined); // counted as failed where it was sent
    await Promise.race([flushed, pause(this.#options.clock, graceMs, done.signal)]);
    done.abort();
  }

  /** The first of several failures is told, and the end of them. */
  #counting(exporter: SpanExporter): SpanExporter {
    const { log, onSpans } = this.#options;
    return {
      export: (spans, told) =>
        exporter.export(spans, (result) => {
          const sent = result.code === SUCCESS;
          this.#held -= spans.length;
          onSpans(sent ? 'exported' : 'failed', spans.length);
          if (!sent && !this.#failing) log.warn('traces_not_sent', { spans: spans.length });
          if (sent && this.#failing) log.info('traces_sent_again', {});
          this.#failing = !sent;
          told({ code: SUCCESS });
        }),
      shutdown: () => exporter.shutdown(),
      forceFlush: async () => exporter.forceFlush?.(),
    };
  }
}

type HrTime = [seconds: number, nanoseconds: number];

function hrTime(ms: number): HrTime {
  const whole = Math.max(0, ms);
  const seconds = Math.floor(whole / MS_PER_S);
  return [seconds, Math.round((whole - seconds * MS_PER_S) * NS_PER_MS)];
}

function toReadable(span: Span, resource: ReadableSpan['resource']): ReadableSpan {
  const { traceId, spanId, parentId, linkId, startMs, endMs } = span;
  const context = (id: string) => ({ traceId, spanId: id, traceFlags: SAMPLED });
  const links: Link[] = linkId === undefined ? [] : [{ context: context(linkId), attributes: { 'heph.link': 'previous attempt' } }];
  return {
    ...{ name: span.name, kind: KINDS[span.kind], attributes: { ...span.attributes }, links, events: [], resource, ended: true },
    ...{ startTime: hrTime(startMs), endTime: hrTime(endMs), duration: hrTime(endMs - startMs) },
    ...{ droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
    spanContext: () => context(spanId),
    ...(parentId === null ? {} : { parentSpanContext: context(parentId) }),
    status: { code: span.failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    instrumentationScope: { name: span.scope },
  };
}

/** What the exporter reads of a resource; the package that makes them would look at the machine. */
function toResource(attributes: SinkOptions['attributes']): ReadableSpan['resource'] {
  const resource: ReadableSpan['resource'] = {
    attributes,
    asyncAttributesPending: false,
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  };
  return resource;
}
