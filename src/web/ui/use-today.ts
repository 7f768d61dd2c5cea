/**
 * Owns: which day it is, also for a page that is open at midnight.
 */
import { useEffect, useState } from 'react';
import type { Dates } from './dates.ts';

const lookEveryMs = 30_000;

/** Milliseconds since the epoch of some moment of the account's current day. Changes when the day does. */
export function useToday(dates: Dates): number {
  const [todayMs, setTodayMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setTodayMs((known) => (dates.sameDay(known, Date.now()) ? known : Date.now())), lookEveryMs);
    return () => clearInterval(timer);
  }, [dates]);
  return todayMs;
}
