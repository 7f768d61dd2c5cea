/**
 * Owns: proof that days and times are those of the account's time zone, whatever the browser's is.
 */
import { expect } from 'chai';
import { tables } from '../../src/web/strings.ts';
import { createDates } from '../../src/web/ui/dates.ts';

describe('the day of a message', () => {
  const labels = (zone: string, now: string, times: readonly string[]) => {
    const dates = createDates(zone, tables.en, 'en-GB');
    // Whether a comma follows the weekday is the library's taste.
    return times.map((time) => dates.dayLabel(time, Date.parse(now)).replace(',', ''));
  };

  it('is the account’s: the same moment is today in Auckland and yesterday in Honolulu', () => {
    const now = '2026-10-08T12:00:00.000Z';
    expect(labels('Pacific/Auckland', now, ['2026-10-08T11:30:00.000Z', '2026-10-08T10:30:00.000Z'])).to.deep.equal(['Today', 'Yesterday']);
    expect(labels('Pacific/Honolulu', now, ['2026-10-08T10:30:00.000Z', '2026-10-08T09:30:00.000Z'])).to.deep.equal(['Today', 'Yesterday']);
  });

  it('is yesterday for the day before also around days of 23 and 25 hours', () => {
    // In Berlin 25 October 2026 has 25 hours, 29 March 2026 has 23.
    expect(labels('Europe/Berlin', '2026-10-25T22:45:00.000Z', ['2026-10-24T10:00:00.000Z'])).to.deep.equal(['Yesterday']);
    expect(labels('Europe/Berlin', '2026-03-29T22:30:00.000Z', ['2026-03-28T10:00:00.000Z', '2026-03-29T10:00:00.000Z'])).to.deep.equal([
      'Saturday 28 March',
      'Yesterday',
    ]);
  });

  it('has its year only when it is another one', () => {
    const now = '2026-01-02T12:00:00.000Z';
    expect(labels('UTC', now, ['2026-01-01T00:00:00.000Z', '2025-12-31T23:59:00.000Z'])).to.deep.equal([
      'Yesterday',
      'Wednesday 31 December 2025',
    ]);
  });

  it('is in German for who reads German, and a time zone that nobody knows is the browser’s own', () => {
    const now = Date.parse('2026-10-08T12:00:00.000Z');
    expect(createDates('UTC', tables.de, 'de').dayLabel('2026-10-01T12:00:00.000Z', now)).to.equal('Donnerstag, 1. Oktober');
    expect(createDates('Nowhere/Land', tables.en, 'en-GB').dayLabel('2026-10-08T12:00:00.000Z', now)).to.equal('Today');
  });
});
