/**
 * Owns: metrics that can be turned off while the server runs, so that what they cost is measured in one process, warm, in turns. Off, nothing is
 * counted or timed; the question whether they are on is asked both ways.
 */
import { createMetrics, type Metrics } from '../../src/ops/index.ts';

export interface SwitchedMetrics {
  readonly metrics: Metrics;
  set(on: boolean): void;
}

export function switchedMetrics(): SwitchedMetrics {
  let on = true;
  const isOn = (): boolean => on;
  const real = createMetrics('bench');
  const { contentType, metrics, watch, kernelObserver, ...tellers } = real;
  return {
    metrics: { contentType, metrics, watch, kernelObserver: switched(kernelObserver, isOn), ...switched(tellers, isOn) },
    set: (next) => {
      on = next;
    },
  };
}

/** The same functions, which do nothing while `isOn` is false. */
function switched<T extends object>(tellers: T, isOn: () => boolean): T {
  const wrap =
    (tell: (...told: unknown[]) => void) =>
    (...told: unknown[]) => {
      if (isOn()) tell(...told);
    };
  return Object.fromEntries(Object.entries(tellers).map(([name, tell]) => [name, wrap(tell)])) as T;
}
