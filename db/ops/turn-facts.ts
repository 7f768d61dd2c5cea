/**
 * Owns: what is so about turns, for operators: rows of one page with everything that tells why a turn waits or is stuck. No words.
 * Does not own: what follows from it (src/ops/stuck.ts).
 * rule: R8 (ages and remaining times by the database clock)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

/** Which turns of a list; each member null: all. */
export interface TurnFilter {
  /** A slug. */
  readonly workspace: string | null;
  readonly surface: 'app' | 'slack' | null;
  readonly conversation: string | null;
}
export const EVERY_TURN: TurnFilter = { workspace: null, surface: null, conversation: null };

interface Page {
  /** The last turn of the page before, in this order. */
  readonly before: string | null;
  readonly limit: number;
  /** Newest first when it is not said. */
  readonly oldestFirst?: boolean;
  readonly filter?: TurnFilter;
}

/** `stuck`: what may be stuck, oldest first: open turns, and turns whose model calls were sent by a server that is dead. */
export type TurnChoice =
  | ({ readonly list: 'queued' | 'running' | 'ended' } & Page)
  | ({ readonly list: 'stuck' } & Omit<Page, 'before' | 'oldestFirst'>)
  | { readonly list: 'one'; readonly id: string };

const factsRow = z.object({
  id: z.string(),
  conversation_id: z.string(),
  workspace_id: z.string(),
  account_id: z.string(),
  workspace: z.string(),
  surface: z.enum(['app', 'slack']),
  status: z.enum(['QUEUED', 'RUNNING', 'DONE', 'STOPPED', 'FAILED']),
  attempt: z.number(),
  error_code: z.string().nullable(),
  run_id: z.string(),
  run_state: z.enum(['WAITING', 'LEASED', 'ENDED']),
  epoch: z.number(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  ended_at: z.string().nullable(),
  /** Since the question. */
  age_ms: z.number(),
  /** Since the stop of a turn that is still leased. */
  stopping_ms: z.number().nullable(),
  /** Left; negative: over for so long. */
  lease_ms: z.number().nullable(),
  deadline_ms: z.number().nullable(),
  /** The server whose sandbox has the run. */
  host_id: z.string().nullable(),
  host_name: z.string().nullable(),
  host_ended_ms: z.number().nullable(),
  /** The turn right before it in its conversation. */
  behind: z.string().nullable(),
  paused: z.boolean(),
  /** Starts of a sandbox that failed since it was asked, or since it last ran. */
  failed_starts: z.number(),
  has_sandbox: z.boolean(),
  /** Longest time since the server of one of its open model calls is dead. */
  dead_call_ms: z.number().nullable(),
  /** Of the installation. */
  free_slots: z.number(),
  servers: z.number(),
});
export type TurnFacts = z.infer<typeof factsRow>;

const OPEN = sql.fragment`
  select id from mentor_turn where status = 'QUEUED' union select turn_id from agent_run where state = 'LEASED' and kind = 'TURN'`;

/** The part of a page that its filter and its place ask for, of turns `t`. */
function pageOf({ before, limit, oldestFirst = false, filter = EVERY_TURN }: Page) {
  const { workspace, surface, conversation } = filter;
  return sql.fragment`
    (${workspace}::text is null or t.workspace_id = (select id from workspace where slug = ${workspace}::text))
    and (${surface}::text is null or t.surface = ${surface}::text)
    and (${conversation}::uuid is null or t.conversation_id = ${conversation}::uuid)
    and (${before}::uuid is null or ${oldestFirst ? sql.fragment`t.id > ${before}::uuid` : sql.fragment`t.id < ${before}::uuid`})
    order by ${oldestFirst ? sql.fragment`t.id` : sql.fragment`t.id desc`} limit ${limit}::int`;
}

function chosen(choice: TurnChoice) {
  switch (choice.list) {
    case 'queued':
      return sql.fragment`select t.id from mentor_turn t where t.status = 'QUEUED' and ${pageOf(choice)}`;
    case 'running':
      return sql.fragment`select t.id from agent_run r join mentor_turn t on t.id = r.turn_id
        where r.state = 'LEASED' and r.kind = 'TURN' and ${pageOf(choice)}`;
    case 'ended':
      return sql.fragment`select t.id from mentor_turn t where t.status in ('DONE', 'STOPPED', 'FAILED')
        and not exists (select from agent_run r where r.turn_id = t.id and r.state = 'LEASED') and ${pageOf(choice)}`;
    case 'stuck':
      return sql.fragment`select t.id from (${OPEN} union select e.turn_id from llm_usage_event e join sandbox_host h on h.id = e.host_id
        where e.state = 'OPEN' and h.ended_at is not null) o join mentor_turn t on t.id = o.id
        where ${pageOf({ ...choice, before: null, oldestFirst: true })}`;
    case 'one':
      return sql.fragment`select ${choice.id}::uuid as id`;
  }
}

type Fragment = ReturnType<typeof sql.fragment>;
const NOW = sql.fragment`(select clock_timestamp())`;
const ms = (from: Fragment, to: Fragment) => sql.fragment`(extract(epoch from ${to} - ${from}) * 1000)::bigint`;
const at = {
  asked: sql.fragment`t.created_at`,
  ended: sql.fragment`t.ended_at`,
  lease: sql.fragment`r.lease_until`,
  deadline: sql.fragment`r.deadline_at`,
  hostEnded: sql.fragment`h.ended_at`,
  callHostEnded: sql.fragment`min(d.ended_at)`,
};

/** Newest first, unless the choice says otherwise. */
export function readTurnFacts(db: Executor, choice: TurnChoice): Promise<readonly TurnFacts[]> {
  const oldestFirst = choice.list === 'stuck' || (choice.list !== 'one' && choice.oldestFirst === true);
  return db.any(sql.prepared(`ops_turns_${choice.list}${oldestFirst ? '_oldest' : ''}`, factsRow)`
    with page as materialized (${chosen(choice)}), floor as materialized (
      select (select count(*)::int from turn_slot where run_id is null and not retiring) as free_slots,
        (select count(*)::int from sandbox_host where ended_at is null and draining_at is null and sandboxes_max > 0) as servers
    )
    select t.id, t.conversation_id, t.workspace_id, t.account_id, w.slug as workspace, t.surface, t.status, t.attempt, t.error_code,
      r.id as run_id, r.state as run_state, r.epoch, t.created_at, t.started_at, t.ended_at, ${ms(at.asked, NOW)} as age_ms,
      case when t.status = 'STOPPED' and r.state = 'LEASED' then ${ms(at.ended, NOW)} end as stopping_ms,
      ${ms(NOW, at.lease)} as lease_ms, ${ms(NOW, at.deadline)} as deadline_ms,
      h.id as host_id, h.name as host_name, ${ms(at.hostEnded, NOW)} as host_ended_ms,
      case when t.status = 'QUEUED' then coalesce(
        (select e.id from mentor_turn e where e.conversation_id = t.conversation_id and e.status = 'QUEUED' and e.question_seq < t.question_seq
          order by e.question_seq desc limit 1),
        (select l.turn_id from agent_run l where l.conversation_id = t.conversation_id and l.state = 'LEASED')) end as behind,
      exists (select from claim_pause p
        where (p.workspace_id is null or p.workspace_id = t.workspace_id) and (p.surface is null or p.surface = t.surface)) as paused,
      (select count(*)::int from sandbox b where b.conversation_id = t.conversation_id and b.start_failed
        and b.created_at >= greatest(t.created_at, t.started_at)) as failed_starts,
      exists (select from sandbox b where b.conversation_id = t.conversation_id and b.state <> 'ENDED') as has_sandbox,
      (select ${ms(at.callHostEnded, NOW)} from llm_usage_event e join sandbox_host d on d.id = e.host_id
        where e.turn_id = t.id and e.state = 'OPEN' and d.ended_at is not null) as dead_call_ms,
      floor.free_slots, floor.servers
    from page join mentor_turn t on t.id = page.id join agent_run r on r.turn_id = t.id join workspace w on w.id = t.workspace_id
      left join sandbox b on b.id = r.sandbox_id and r.state = 'LEASED' left join sandbox_host h on h.id = b.host_id cross join floor
    order by ${oldestFirst ? sql.fragment`t.id` : sql.fragment`t.id desc`}`);
}
