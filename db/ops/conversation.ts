/**
 * Owns: one conversation as operators read it: its row, its ledger by place, kind and size, and every attempt that its runs had. No words.
 * rule: R8 (what is left of a lease by the database clock)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const conversationRow = z.object({
  id: z.string(),
  workspace: z.string(),
  account: z.string(),
  /** The conversation that it is a thread of. */
  parent: z.string().nullable(),
  version: z.number(),
  last_seq: z.number(),
  created_at: z.string(),
  queued: z.number(),
  entries: z.number(),
  erased: z.number(),
});
export type ConversationFacts = z.infer<typeof conversationRow>;

/** null: there is no such conversation. */
export function readConversationFacts(db: Executor, id: string): Promise<ConversationFacts | null> {
  return db.maybeOne(sql.prepared('ops_conversation', conversationRow)`
    select c.id, w.slug as workspace, c.account_id as account, c.parent_conversation_id as parent, c.version, c.last_seq, c.created_at,
      (select count(*)::int from mentor_turn t where t.conversation_id = c.id and t.status = 'QUEUED') as queued,
      (select count(*)::int from mentor_entry e where e.conversation_id = c.id) as entries,
      (select count(*)::int from mentor_entry e where e.conversation_id = c.id and e.erased_at is not null) as erased
    from mentor_conversation c join workspace w on w.id = c.workspace_id
    where c.id = ${id}::uuid`);
}

const entryRow = z.object({
  id: z.string(),
  seq: z.number(),
  kind: z.string(),
  turn: z.string().nullable(),
  bytes: z.number(),
  created_at: z.string(),
  erased: z.boolean(),
});
export type LedgerEntry = z.infer<typeof entryRow>;

/** The last entries before `before` (null: of all), newest first. */
export function readLedger(
  db: Executor,
  at: { readonly conversation: string; readonly before: number | null; readonly limit: number },
): Promise<readonly LedgerEntry[]> {
  return db.any(sql.prepared('ops_ledger', entryRow)`
    select id, seq, kind, turn_id as turn, coalesce(octet_length(payload::text), octet_length(text), 0) as bytes, created_at,
      erased_at is not null as erased
    from mentor_entry where conversation_id = ${at.conversation}::uuid and (${at.before}::bigint is null or seq < ${at.before}::bigint)
    order by seq desc limit ${at.limit}::int`);
}

const attemptRow = z.object({
  turn: z.string(),
  run: z.string(),
  epoch: z.number(),
  sandbox: z.string().nullable(),
  host: z.string().nullable(),
  began_at: z.string().nullable(),
  ended_at: z.string().nullable(),
  how: z.string(),
  /** Left; negative: over for so long. null: it does not run. */
  lease_ms: z.number().nullable(),
  deadline_ms: z.number().nullable(),
  calls: z.number(),
});
export type AttemptFacts = z.infer<typeof attemptRow>;

const RUNS_MAX = 50;

/**
 * Every attempt of the last 50 runs of a conversation, or of one turn's: newest run first, its epochs in order. What is over and was not a
 * run's only attempt stands in `run_attempt`; the run's own row tells of the present or only one.
 */
export function readAttempts(
  db: Executor,
  of: { readonly conversation: string } | { readonly turn: string },
): Promise<readonly AttemptFacts[]> {
  const [conversation, turn] = 'turn' in of ? [null, of.turn] : [of.conversation, null];
  return db.any(sql.prepared('ops_attempts', attemptRow)`
    with run as materialized (
      select r.id, r.turn_id, r.state, r.epoch, r.sandbox_id, r.called_at, r.ended_at, r.lease_until, r.deadline_at, t.started_at
      from agent_run r join mentor_turn t on t.id = r.turn_id
      where r.epoch > 0 and (r.conversation_id = ${conversation}::uuid or r.turn_id = ${turn}::uuid) order by r.turn_id desc limit ${RUNS_MAX}::int
    ), attempt as (
      select run.turn_id, run.id, a.epoch, a.sandbox_id, a.called_at, a.ended_at, a.how, null::timestamptz as lease_until,
        null::timestamptz as deadline_at, run.started_at
      from run join run_attempt a on a.run_id = run.id
      union all
      select run.turn_id, run.id, run.epoch, run.sandbox_id, run.called_at, run.ended_at, run.state, run.lease_until, run.deadline_at, run.started_at
      from run where not exists (select from run_attempt a where a.run_id = run.id and a.epoch = run.epoch)
    )
    select a.turn_id as turn, a.id as run, a.epoch, a.sandbox_id as sandbox, h.name as host,
      case when a.epoch = 1 then a.started_at else a.called_at end as began_at, a.ended_at, a.how,
      (extract(epoch from a.lease_until - (select clock_timestamp())) * 1000)::bigint as lease_ms,
      (extract(epoch from a.deadline_at - (select clock_timestamp())) * 1000)::bigint as deadline_ms,
      (select count(*)::int from llm_usage_event e where e.turn_id = a.turn_id and e.epoch = a.epoch) as calls
    from attempt a left join sandbox b on b.id = a.sandbox_id left join sandbox_host h on h.id = b.host_id
    order by a.turn_id desc, a.epoch`);
}
