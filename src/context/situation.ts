/**
 * Owns: the situation (seed, "The situation"): the facts of now. The loop adds it as the last message of each model request and never stores it.
 */
import type { TurnFacts } from '../../db/context/read-path.ts';
import { calendarDay, dayAndTime, roughDuration } from './times.ts';

const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

function days(facts: TurnFacts): string {
  const day = (offset: number) => calendarDay(facts.now, facts.timeZone, offset);
  const sinceMonday = WEEKDAYS.indexOf(day(0).slice(0, 3));
  const week = (start: number) => `${day(start)} to ${day(start + 6)}`;
  return `Today is ${day(0)}, yesterday was ${day(-1)}. This week is ${week(-sinceMonday)}, last week was ${week(-sinceMonday - 7)}.`;
}

export function situation(facts: TurnFacts): string {
  const lines = [
    `Now: ${dayAndTime(facts.now, facts.timeZone)}. The question was written in ${facts.surface === 'slack' ? 'Slack' : 'the app'}.`,
    facts.previousAt === null
      ? 'This is the first message of the conversation.'
      : `Time since the last message: ${roughDuration(Date.parse(facts.now) - Date.parse(facts.previousAt))}.`,
    `The developer is ${facts.displayName}, in the workspace ${facts.workspaceName}.`,
    ...(facts.page ? [`The developer looks at the page "${facts.page.title}" (${facts.page.url}).`] : []),
    days(facts),
    'Start with read INDEX.md: it lists what this turn can read.',
  ];
  return `<situation>\n${lines.join('\n')}\n</situation>`;
}
