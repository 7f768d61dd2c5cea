/**
 * Owns: who is told what a turn does: metrics always, and the tracer when traces are on. OpenTelemetry is loaded only then.
 */
import type { TurnObserver } from '../actors/index.ts';
import type { Config } from './config.ts';
import type { OpenedDatabase } from './database.ts';
import type { GatewayOptions } from './gateway/index.ts';
import type { AgentListenerOptions } from './http/index.ts';
import { systemClock } from './kernel/clock.ts';
import type { Log } from './kernel/log.ts';
import type { LocalHostOptions } from './local-sandboxes.ts';
import type { Metrics } from './ops/index.ts';

export interface Observers {
  readonly turns: TurnObserver;
  /** For the gateway. */
  readonly calls: Pick<GatewayOptions, 'onUsage' | 'onCall'>;
  /** For the agent listener. */
  readonly agent: Pick<AgentListenerOptions, 'observe' | 'traceparent'>;
  /** For the host of local runners. */
  readonly runners: Pick<LocalHostOptions, 'onSaid'>;
  /** Sends the spans that are left, for at most so long. */
  stop(graceMs: number): Promise<void>;
}

export interface ObserversParts {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly host: OpenedDatabase['host'];
  readonly version: string;
}

export async function openObservers({ config, log, metrics, host, version }: ObserversParts): Promise<Observers> {
  const { traces, assistantName: agentName } = config;
  if (traces === null) {
    return {
      ...{ turns: metrics, calls: { onUsage: metrics.modelUsed }, agent: { observe: metrics.observeRequest }, runners: {} },
      stop: async () => undefined,
    };
  }
  const { openTracer } = await import('./traces/otlp.ts');
  const service = { version, instanceId: host.id };
  const tracer = openTracer({ ...traces, service, agentName, clock: systemClock, log, onSpans: metrics.spans });
  return {
    turns: {
      ...metrics,
      turnEnded(turn) {
        metrics.turnEnded(turn);
        tracer.turnEnded(turn);
      },
      attemptEnded: (attempt) => tracer.attemptEnded(attempt),
    },
    calls: { onUsage: metrics.modelUsed, onCall: (call) => tracer.modelCall(call) },
    agent: {
      observe(request) {
        metrics.observeRequest(request);
        tracer.request(request);
      },
      traceparent: (run) => tracer.traceparent(run),
    },
    runners: { onSaid: (event, fields) => tracer.runnerSaid(event, fields) },
    stop: (graceMs) => tracer.stop(graceMs),
  };
}
