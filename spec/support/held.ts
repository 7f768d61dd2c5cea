/**
 * A transaction that a spec holds open, and waiting until another statement is stuck behind it.
 */
import { type Database, type Executor, sql } from '../../db/pool.ts';
import { until } from './actors.ts';
import { run } from './ledger.ts';

/** Runs `work` in a transaction and keeps it open. `commit` ends it and gives the result. */
export async function hold<T>(db: Database, work: (tx: Executor) => Promise<T>): Promise<{ commit(): Promise<T> }> {
  const [worked, open] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const done = db.transaction(async (tx) => {
    const result = await work(tx);
    worked.resolve();
    await open.promise;
    return result;
  });
  done.catch(worked.reject);
  await worked.promise;
  return {
    commit: () => {
      open.resolve();
      return done;
    },
  };
}

/** Waits until a statement that contains `words` waits for a lock in this database. */
export function stuck(db: Database, words: string): Promise<void> {
  return until(`a statement with "${words}" waits for a lock`, async () => {
    const waiting = await run(
      db,
      sql.unsafe`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and strpos(query, ${words}) > 0`,
    );
    return waiting.length > 0;
  });
}
