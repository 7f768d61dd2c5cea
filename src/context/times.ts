/**
 * Owns: times as the model reads them: in the account's time zone, with the weekday, so that it never calculates a date.
 */

interface Fields {
  readonly weekday: string;
  readonly date: string;
  readonly time: string;
}

const formatters = new Map<string, Intl.DateTimeFormat>();

function formatter(timeZone: string): Intl.DateTimeFormat {
  let found = formatters.get(timeZone);
  if (!found) {
    const fields = { weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const;
    found = new Intl.DateTimeFormat('en-US', { ...fields, timeZone, hourCycle: 'h23' });
    formatters.set(timeZone, found);
  }
  return found;
}

function fields(at: Date, timeZone: string): Fields {
  const parts = new Map(
    formatter(timeZone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  return {
    weekday: parts.get('weekday') ?? '',
    date: `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`,
    time: `${parts.get('hour')}:${parts.get('minute')}`,
  };
}

/** `Thu 2026-10-08 09:12 Europe/Berlin` */
export function dayAndTime(isoTime: string, timeZone: string): string {
  const { weekday, date, time } = fields(new Date(isoTime), timeZone);
  return `${weekday} ${date} ${time} ${timeZone}`;
}

/** `Mon 2026-10-12 14:41 +02:00`: a time in a context document (seed, "Context documents"). The offset is that of the moment. */
export function contextTime(isoTime: string, timeZone: string): string {
  const at = new Date(isoTime);
  const { weekday, date, time } = fields(at, timeZone);
  return `${weekday} ${date} ${time} ${offset(at, timeZone)}`;
}

const offsetFormatters = new Map<string, Intl.DateTimeFormat>();

/** `+02:00`; UTC is `+00:00`. */
function offset(at: Date, timeZone: string): string {
  const known = offsetFormatters.get(timeZone) ?? new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  offsetFormatters.set(timeZone, known);
  const name = known.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  return name.replace('GMT', '') || '+00:00';
}

/** `[Thu 2026-10-08 09:12 Europe/Berlin · Slack]`: what stands before each question and digest (seed, "The path"). */
export function messagePrefix(isoTime: string, timeZone: string, surface: 'app' | 'slack'): string {
  return `[${dayAndTime(isoTime, timeZone)}${surface === 'slack' ? ' · Slack' : ''}]`;
}

/** The calendar day, for example `Thu 2026-10-08`, `daysFromNow` days from the day of `isoTime` in that zone. */
export function calendarDay(isoTime: string, timeZone: string, daysFromNow: number): string {
  const today = fields(new Date(isoTime), timeZone).date;
  const day = new Date(`${today}T12:00:00Z`); // noon UTC: adding days never crosses a clock change
  day.setUTCDate(day.getUTCDate() + daysFromNow);
  const { weekday, date } = fields(day, 'UTC');
  return `${weekday} ${date}`;
}

/** `3 minutes`, `2 hours`, `5 days`: the largest unit that is not zero. */
export function roughDuration(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  const [count, unit] =
    minutes < 60 ? [minutes, 'minute'] : minutes < 2_880 ? [Math.floor(minutes / 60), 'hour'] : [Math.floor(minutes / 1_440), 'day'];
  return minutes === 0 ? 'less than a minute' : `${count} ${unit}${count === 1 ? '' : 's'}`;
}
