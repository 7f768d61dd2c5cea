/** `GET /metrics`: all metrics in Prometheus' text format. */
import type { Route } from '../route.ts';

/** Where the metrics are kept (src/ops). */
export interface MetricsSource {
  readonly contentType: string;
  metrics(): Promise<string>;
}

export function getMetrics(source: MetricsSource): Route {
  return {
    method: 'GET',
    path: '/metrics',
    async handle(ctx) {
      ctx.set('Content-Type', source.contentType);
      ctx.body = await source.metrics();
    },
  };
}
