/**
 * Owns: a witness inside the database. Each commit that breaks a rule is written down, and each step of each turn.
 */
import { z } from 'zod';
import { type Database, sql } from '../../db/pool.ts';

const nothing = z.object({});
const what = z.object({ what: z.string() });
const steps = z.object({ turn_id: z.string(), steps: z.array(z.string()) });

export interface CommitWatch {
  /** What was wrong at some commit; empty when nothing was. */
  violations(): Promise<readonly string[]>;
  /** The statuses that each turn went through, oldest first, by turn id. */
  steps(): Promise<ReadonlyMap<string, readonly string[]>>;
}

/** From now on: at most `capacity` leased turns, at most one in a conversation, and none starts before an older one of its conversation ended. */
export async function watchCommits(db: Database, capacity: number): Promise<CommitWatch> {
  const make = async (query: Parameters<typeof db.any>[0]) => void (await db.any(query));
  await make(sql.type(nothing)`create table commit_violation (what text not null)`);
  await make(sql.type(nothing)`create table turn_step (n bigserial primary key, turn_id uuid not null, status text not null)`);
  await make(sql.type(nothing)`
    create function watch_runs() returns trigger language plpgsql as $$ begin
      insert into commit_violation select 'leased turns: ' || count(*) from agent_run where state = 'LEASED' and kind = 'TURN'
        having count(*) > (select turns from watched_capacity);
      insert into commit_violation select 'leased runs of one conversation: ' || count(*) from agent_run where state = 'LEASED'
        group by conversation_id having count(*) > 1;
      return null;
    end $$`);
  await make(sql.type(nothing)`
    create function watch_turns() returns trigger language plpgsql as $$ begin
      if tg_op = 'INSERT' or old.status <> new.status then
        insert into turn_step (turn_id, status) values (new.id, new.status);
      end if;
      if new.status = 'RUNNING' then
        insert into commit_violation select 'started before an older one ended' from mentor_turn t where t.conversation_id = new.conversation_id
          and t.question_seq < new.question_seq and t.status in ('QUEUED', 'RUNNING') limit 1;
      end if;
      return null;
    end $$`);
  await make(sql.type(nothing)`create table watched_capacity (turns integer not null)`);
  await make(sql.type(nothing)`insert into watched_capacity (turns) values (${capacity})`);
  await make(sql.type(nothing)`create constraint trigger watch_runs after insert or update on agent_run
    deferrable initially deferred for each row execute function watch_runs()`);
  await make(
    sql.type(nothing)`create trigger watch_turns after insert or update on mentor_turn for each row execute function watch_turns()`,
  );
  return {
    violations: async () => (await db.any(sql.type(what)`select what from commit_violation`)).map((row) => row.what),
    steps: async () => {
      const rows = await db.any(sql.type(steps)`select turn_id, array_agg(status order by n) as steps from turn_step group by turn_id`);
      return new Map(rows.map((row) => [row.turn_id, row.steps]));
    },
  };
}
