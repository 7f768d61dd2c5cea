/**
 * Owns: a moment as the model reads it: in the developer's time zone, with weekday and offset, so that it never calculates one. Pure.
 */

/** `Mon 2026-10-12 14:41 +02:00`. An unknown zone is read as UTC, and what is no time stays as it is. */
export function momentIn(isoTime: string, timeZone: string): string {
  const at = new Date(isoTime);
  if (Number.isNaN(at.getTime())) return isoTime;
  const parts = new Map(
    formatter(timeZone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  const part = (name: Intl.DateTimeFormatPartTypes): string => parts.get(name) ?? '';
  const offset = part('timeZoneName').replace('GMT', '');
  const date = `${part('year')}-${part('month')}-${part('day')}`;
  return `${part('weekday')} ${date} ${part('hour')}:${part('minute')} ${offset === '' ? '+00:00' : offset}`;
}

function formatter(timeZone: string): Intl.DateTimeFormat {
  const fields = { weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const;
  const rest = { hourCycle: 'h23', timeZoneName: 'longOffset' } as const;
  try {
    return new Intl.DateTimeFormat('en-US', { ...fields, ...rest, timeZone });
  } catch {
    // A zone that this runtime does not know.
    return new Intl.DateTimeFormat('en-US', { ...fields, ...rest, timeZone: 'UTC' });
  }
}
