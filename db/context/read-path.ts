/**
 * Owns: the rows of a path, in path order, in one bounded statement. Path order (seed, "The path"): groups by turn in the order of their first
 * seq, inside a group by seq; an entry outside of a turn is a group of its own. A thread has the main conversation up to and including its
 * parent, then its own entries.
 * Bounded: after a summary only what the summary keeps and what came later is read, by turn, so the cost does not depend on what is older;
 * and a path with more bytes than its bound is not given out at all.
 */
import { z } from 'zod';
import type { RunId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export type { TurnFacts } from './read-facts.ts';

const pathRow = z.object({
  id: z.string(),
  turn_id: z.string().nullable(),
  kind: z.enum(['QUESTION', 'ANSWER', 'TOOL_RESULT', 'SYSTEM', 'SUMMARY', 'EDIT', 'DIGEST']),
  surface: z.enum(['app', 'slack']),
  /** The words of a question or a digest; null for other kinds, and when they were erased. */
  text: z.string().nullable(),
  payload: z.string().nullable(),
  created_at: z.string(),
  erased: z.boolean(),
  edited_at: z.string().nullable(),
  status: z.enum(['QUEUED', 'RUNNING', 'DONE', 'STOPPED', 'FAILED']).nullable(),
});
export type PathRow = z.infer<typeof pathRow>;
const readRow = pathRow.extend({ bytes: z.number() });

export type PathRead =
  /** The last row is the run's question. Empty: the run has no turn. */
  | { readonly kind: 'path'; readonly rows: readonly PathRow[] }
  /** `bytes`: what it would have been. */
  | { readonly kind: 'too-long'; readonly bytes: number };

/**
 * Where a summary says that the kept messages start. Read with a pattern, because a JSON operator refuses a payload with `\u0000` in any
 * string; inside of a string the quotes of this pattern are escaped, so words cannot match it.
 */
const KEPT = '"firstKeptEntryId":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"';

/** The path of a run's turn. Turns that wait behind the run's question are not on it. `maxBytes`: of stored payloads and words. */
export async function readPath(db: Executor, runId: RunId, maxBytes: number): Promise<PathRead> {
  const rows = await db.any(sql.prepared('context_read_path', readRow)`
    with asked as materialized (
      select t.conversation_id as own_id, t.question_seq, c.parent_conversation_id as main_id, p.seq as parent_seq,
        coalesce(pt.question_seq, p.seq) as parent_place
      from agent_run r join mentor_turn t on t.id = r.turn_id join mentor_conversation c on c.id = t.conversation_id
        left join mentor_entry p on p.id = c.parent_entry_id left join mentor_turn pt on pt.id = p.turn_id
      where r.id = ${runId}
    ), own_summary as materialized (
      select s.* from asked a cross join lateral (
        select t.question_seq as place, substring(e.payload::text from ${KEPT}::text)::uuid as kept_id
        from mentor_entry e join mentor_turn t on t.id = e.turn_id
        where e.conversation_id = a.own_id and e.kind = 'SUMMARY' and e.erased_at is null and t.question_seq < a.question_seq
        order by e.seq desc limit 1) s
    ), main_summary as materialized (
      select s.* from asked a cross join lateral (
        select t.question_seq as place, substring(e.payload::text from ${KEPT}::text)::uuid as kept_id
        from mentor_entry e join mentor_turn t on t.id = e.turn_id
        where e.conversation_id = a.main_id and e.kind = 'SUMMARY' and e.erased_at is null
          and (t.question_seq, e.seq) <= (a.parent_place, a.parent_seq)
        order by e.seq desc limit 1) s
      where not exists (select from own_summary)
    ), summary as materialized (
      select true as own, * from own_summary union all select false, * from main_summary
    ), start as materialized (
      select a.*, s.own, s.place as summary_place, k.conversation_id as kept_in, k.seq as kept_seq, coalesce(kt.question_seq, k.seq) as kept_place
      from asked a left join summary s on true
        left join mentor_entry k on k.id = s.kept_id and k.kind <> 'SUMMARY' and k.conversation_id in (a.own_id, a.main_id)
        left join mentor_turn kt on kt.id = k.turn_id
    ), span as materialized (
      select 0 as part, main_id as conversation_id,
        case when kept_in = main_id then kept_place else coalesce(summary_place, 0) end as from_place,
        case when kept_in = main_id then kept_seq else 0 end as from_seq, parent_place as to_place, parent_seq as to_seq
      from start where main_id is not null and (own is not true or kept_in = main_id)
      union all
      select 1, own_id,
        case when own is not true or kept_in = main_id then 0 when kept_in = own_id then kept_place else summary_place end,
        case when own and kept_in = own_id then kept_seq else 0 end, question_seq, question_seq
      from start
    ), placed as (
      -- Turn by turn, by index: the planner knows nothing of a span's width and might read whole tables otherwise.
      select s.part, t.question_seq as place, t.status, e.*
      from span s cross join lateral (
          select t.id, t.question_seq, t.status from mentor_turn t
          where t.conversation_id = s.conversation_id and t.question_seq between s.from_place and s.to_place order by t.question_seq offset 0
        ) t cross join lateral (select e.* from mentor_entry e where e.turn_id = t.id offset 0) e
      where (t.question_seq, e.seq) >= (s.from_place, s.from_seq) and (t.question_seq, e.seq) <= (s.to_place, s.to_seq)
      union all
      select s.part, e.seq, null, e.*
      from span s cross join lateral (
          select e.* from mentor_entry e
          where e.conversation_id = s.conversation_id and e.turn_id is null and e.seq between greatest(s.from_place, s.from_seq) and s.to_place
          offset 0
        ) e
    ), sized as (
      select p.part, p.place, p.seq, p.id, p.turn_id, p.kind, p.surface, case when p.kind in ('QUESTION', 'DIGEST') then p.text end as text,
        p.payload::text as payload, p.created_at, p.erased_at is not null as erased, p.edited_at, p.status,
        sum(octet_length(coalesce(p.payload::text, p.text, ''))) over () as bytes,
        row_number() over (order by p.part, p.place, p.seq) as nth
      from placed p
    )
    select id, turn_id, kind, surface, text, case when bytes <= ${maxBytes} then payload end as payload, created_at, erased, edited_at, status,
      bytes::float8 as bytes
    from sized where bytes <= ${maxBytes} or nth = 1 order by nth`);
  const bytes = rows[0]?.bytes ?? 0;
  return bytes > maxBytes ? { kind: 'too-long', bytes } : { kind: 'path', rows };
}
