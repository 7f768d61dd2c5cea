/**
 * Owns: how long copies are kept that a tool made of what stands elsewhere, Slack's messages among it: nothing says which source a result
 * copied, so each of them has the shortest retention (seed, "Expiry and the weekly digest").
 * Does not own: when it is run and how far back (src/slack/retention.ts).
 */
import { z } from 'zod';
import type { EntryId } from '../../src/kernel/ids.ts';
import { type ChangedConversation, ERASE_BATCH_MAX, eraseEntries } from '../ledger/erase.ts';
import { type Database, type Executor, sql } from '../pool.ts';

/**
 * True for the first that asks in a week, which begins on Sunday, UTC. A server that dies in its run loses it for this week: whoever sweeps
 * has to begin early enough for a week that is missed.
 */
export async function beginWeek(db: Executor, name: string): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('weekly_sweep_begin', z.object({ name: z.string() }))`
    insert into weekly_sweep (name, week)
    values (${name}, (date_trunc('week', (clock_timestamp() at time zone 'UTC') + interval '1 day') - interval '1 day')::date)
    on conflict (name) do update set week = excluded.week where weekly_sweep.week < excluded.week
    returning name`);
  return row !== null;
}

const copyRow = z.object({ id: z.string() });

/**
 * Erases one batch of tool results that are older, with the summaries that cover them. Older by the database's clock (rule: R8). null: there
 * are none.
 */
export async function eraseOldCopies(
  db: Database,
  { olderThanMs, graceMs }: { readonly olderThanMs: number; readonly graceMs: number },
): Promise<readonly ChangedConversation[] | null> {
  const rows = await db.any(sql.prepared('slack_old_copies', copyRow)`
    select id from mentor_entry
    where kind = 'TOOL_RESULT' and erased_at is null and created_at < (select clock_timestamp()) - ${olderThanMs}::float8 * interval '1 ms'
    order by created_at, id limit ${ERASE_BATCH_MAX}::int`);
  if (rows.length === 0) return null;
  return db.transaction((tx) => eraseEntries(tx, { ids: rows.map(({ id }) => id as EntryId), reach: 'all', graceMs }));
}
