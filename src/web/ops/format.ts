/**
 * Owns: durations and times as the operator page writes them.
 */
import { locale, t } from './words.ts';

const SECOND_MS = 1_000;

/** `90000` -> `1m 30s`. Negative: over for so long. */
export function duration(ms: number | null): string {
  if (ms === null) return '–';
  const seconds = Math.round(Math.abs(ms) / SECOND_MS);
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const text = h > 0 ? `${h}h ${m}m` : m > 0 ? `${m}m ${s}s` : `${s}s`;
  return ms < 0 ? t('over for {duration}', { duration: text }) : text;
}

const CLOCK = new Intl.DateTimeFormat(locale, { dateStyle: 'short', timeStyle: 'medium' });

export function time(iso: string | null): string {
  return iso === null ? '–' : CLOCK.format(new Date(iso));
}

/** The end of an id: the beginning is its time, and alike for all of one minute. */
export function short(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}

/** `{status: 'DONE', epoch: 1}` -> `status DONE, epoch 1`. */
export function note(of: Readonly<Record<string, unknown>> | null): string {
  return Object.entries(of ?? {})
    .map(([name, value]) => `${name} ${value ?? '–'}`)
    .join(', ');
}
