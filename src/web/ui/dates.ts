/**
 * Owns: days and times in the time zone of the account, which need not be the browser's.
 */
import type { Strings } from '../strings.ts';

export interface Dates {
  /** The same for all times of one day. */
  dayKey(iso: string): string;
  /** Whether two moments, in milliseconds since the epoch, are on one day. */
  sameDay(aMs: number, bMs: number): boolean;
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

/** The day before a day, both as `2026-03-29`. Counted in calendar days: a day may have 23 or 25 hours. */
function dayBefore(key: string): string {
  const noon = new Date(`${key}T12:00:00Z`);
  noon.setUTCDate(noon.getUTCDate() - 1);
  return noon.toISOString().slice(0, 10);
}

/**
 * @param timeZone an IANA name
 * @param locale how dates are written, a BCP 47 tag of the words' language
 */
export function createDates(timeZone: string, words: Pick<Strings, 'day'>, locale: string): Dates {
  const key = formatter(timeZone, { year: 'numeric', month: '2-digit', day: '2-digit' }, 'en-CA');
  const day = formatter(timeZone, { weekday: 'long', day: 'numeric', month: 'long' }, locale);
  const dayOfYear = formatter(timeZone, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }, locale);
  const time = formatter(timeZone, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }, locale);
  const full = formatter(timeZone, { dateStyle: 'full', timeStyle: 'long' }, locale);
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
    sameDay: (aMs, bMs) => keyOf(aMs) === keyOf(bMs),
    dayLabel(iso, nowMs) {
      const ms = Date.parse(iso);
      const [then, today] = [keyOf(ms), keyOf(nowMs)];
      if (then === today) return words.day.today;
      if (then === dayBefore(today)) return words.day.yesterday;
      return then.slice(0, 4) === today.slice(0, 4) ? day.format(ms) : dayOfYear.format(ms);
    },
    time: (iso) => time.format(Date.parse(iso)),
    full: (iso) => full.format(Date.parse(iso)),
  };
}
