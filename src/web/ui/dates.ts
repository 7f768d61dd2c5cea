/**
 * Owns: days and times in the time zone of the account, which need not be the browser's.
 */
import { t } from '../strings.ts';

export interface Dates {
  /** The same for all times of one day. */
  dayKey(iso: string): string;
  /** `Today`, `Yesterday`, or the date. */
  dayLabel(iso: string, nowMs: number): string;
  /** `14:41`. */
  time(iso: string): string;
  /** The whole date and time, for a tooltip. */
  full(iso: string): string;
}

function formatter(timeZone: string, options: Intl.DateTimeFormatOptions, locale: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat(locale, { ...options, timeZone });
  } catch {
    // A time zone that this browser does not know: its own one is the best guess.
    return new Intl.DateTimeFormat(locale, options);
  }
}

const dayMs = 86_400_000;

export function createDates(timeZone: string): Dates {
  const key = formatter(timeZone, { year: 'numeric', month: '2-digit', day: '2-digit' }, 'en-CA');
  const day = formatter(timeZone, { weekday: 'long', day: 'numeric', month: 'long' }, t.language);
  const dayOfYear = formatter(timeZone, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }, t.language);
  const time = formatter(timeZone, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }, t.language);
  const full = formatter(timeZone, { dateStyle: 'full', timeStyle: 'long' }, t.language);
  // Formatting is slow enough to be felt in a long conversation, and each message asks for its day again and again.
  const keys = new Map<string, string>();
  const keyOf = (ms: number) => key.format(ms);
  const dayKey = (iso: string) => {
    const known = keys.get(iso) ?? keyOf(Date.parse(iso));
    keys.set(iso, known);
    return known;
  };
  return {
    dayKey,
    dayLabel(iso, nowMs) {
      const ms = Date.parse(iso);
      if (keyOf(ms) === keyOf(nowMs)) return t.day.today;
      if (keyOf(ms) === keyOf(nowMs - dayMs)) return t.day.yesterday;
      return keyOf(ms).slice(0, 4) === keyOf(nowMs).slice(0, 4) ? day.format(ms) : dayOfYear.format(ms);
    },
    time: (iso) => time.format(Date.parse(iso)),
    full: (iso) => full.format(Date.parse(iso)),
  };
}
