/**
 * Owns: what a starting server finds and leaves: attempts that were leased, what became of each, and whether slots, runs and turns agree.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const foundRow = z.object({ run_id: z.string(), epoch: z.number() });
export type FoundAttempt = z.infer<typeof foundRow>;

/** Every leased attempt of the installation; at most one for each slot. */
export function readLeasedAttempts(db: Executor): Promise<readonly FoundAttempt[]> {
  return db.any(
    sql.prepared('ops_leased_attempts', foundRow)`select id as run_id, epoch from agent_run where state = 'LEASED' and kind = 'TURN'`,
  );
}

const fateRow = z.object({
  /** Still leased, to a sandbox that is not ended. */
  running: z.number(),
  /** Still leased, to a sandbox that is ended: nobody took it back. */
  orphans: z.number(),
  /** Waits again, or runs at a later epoch. */
  requeued: z.number(),
  failed: z.number(),
  stopped: z.number(),
  done: z.number(),
});
export type Fates = z.infer<typeof fateRow>;

/** What became of these attempts. Each is counted once; one whose rows are gone is in no number. */
export function readFates(db: Executor, found: readonly FoundAttempt[]): Promise<Fates> {
  const [runs, epochs] = [found.map(({ run_id }) => run_id), found.map(({ epoch }) => epoch)];
  return db.one(sql.prepared('ops_fates', fateRow)`
    select count(*) filter (where held and b.state <> 'ENDED')::int as running, count(*) filter (where held and b.state = 'ENDED')::int as orphans,
      count(*) filter (where not held and (r.state = 'WAITING' or r.epoch > f.epoch))::int as requeued,
      count(*) filter (where not held and r.state = 'ENDED' and r.epoch = f.epoch and t.status = 'FAILED')::int as failed,
      count(*) filter (where not held and r.state = 'ENDED' and r.epoch = f.epoch and t.status = 'STOPPED')::int as stopped,
      count(*) filter (where not held and r.state = 'ENDED' and r.epoch = f.epoch and t.status = 'DONE')::int as done
    from unnest(${sql.array(runs, 'uuid')}, ${sql.array(epochs, 'int4')}) as f(run_id, epoch) join agent_run r on r.id = f.run_id
      join mentor_turn t on t.id = r.turn_id left join sandbox b on b.id = r.sandbox_id
      cross join lateral (select r.state = 'LEASED' and r.epoch = f.epoch as held) as fate`);
}

const booksRow = z.object({
  slots: z.number(),
  held: z.number(),
  free: z.number(),
  leased: z.number(),
  running: z.number(),
  stopping: z.number(),
});
export type Books = z.infer<typeof booksRow>;

/** The three books that must agree at every instant (rules R4 and R6): slots, runs, turns. `slots` are all, retiring ones included. */
export function readBooks(db: Executor): Promise<Books> {
  return db.one(sql.prepared('ops_books', booksRow)`
    select (select count(*)::int from turn_slot) as slots, (select count(run_id)::int from turn_slot) as held,
      (select count(*)::int from turn_slot where run_id is null) as free,
      (select count(*)::int from agent_run where state = 'LEASED' and kind = 'TURN') as leased,
      (select count(*)::int from mentor_turn where status = 'RUNNING') as running,
      (select count(*)::int from agent_run r join mentor_turn t on t.id = r.turn_id where r.state = 'LEASED' and t.status = 'STOPPED') as stopping`);
}
