/**
 * Owns: where traces go. The address is the standard variable of OpenTelemetry, and so is what the exporter reads by itself
 * (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE`, …); what is Heph's own is named HEPH_.
 */
import type { Reader } from './reader.ts';

export interface TracesConfig {
  /** `…/v1/traces` of the collector. */
  readonly url: URL;
  /** Share of turns that are traced, 0 to 1. */
  readonly ratio: number;
}

const DEFAULT_ENDPOINT = 'http://localhost:4318';
const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';

/** null: no traces. */
export function readTraces(read: Reader): TracesConfig | null {
  const mode = read.choice('HEPH_TRACES', 'off', ['off', 'otlp']);
  const ratio = Number(read.decimal('HEPH_TRACES_RATIO') ?? '1');
  if (ratio > 1) read.bad('HEPH_TRACES_RATIO', String(ratio), 'a share of turns from 0 to 1');
  if (mode === 'off') return null;
  const base = read.url(ENDPOINT, ['http:', 'https:']) ?? new URL(DEFAULT_ENDPOINT);
  const url = new URL(base);
  url.pathname = `${base.pathname.replace(/\/$/, '')}/v1/traces`;
  return { url, ratio };
}
