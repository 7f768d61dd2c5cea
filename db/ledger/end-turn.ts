/**
 * Owns: the end of an attempt, in one statement: entries, turn, run and slot, all or none.
 * rule: R5 (run, epoch and sandbox in the statement's own WHERE, at the version the caller decided on)
 * rule: R7 (only this statement writes a turn's entries)  rule: R12 (after an erasure is requested it stores no entries)
 * The main conversation row of the tree is held before entries are stored, FOR KEY SHARE by a thread: an erasure holds it FOR UPDATE. When the
 * tree's count of erasures has moved since the claim, summaries and search results are stored erased. An attempt whose question was erased
 * stores no entries.
 */
import { z } from 'zod';
import type { ConversationId, EntryId, TurnId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import { type AttemptKey, sandboxLives } from './fence.ts';
import { ATTEMPT_TIME, TURN_TIMES, type TurnTiming, timingRow, toTiming } from './timing.ts';

export interface NewEntry {
  readonly id: EntryId;
  readonly kind: 'ANSWER' | 'TOOL_RESULT' | 'SYSTEM' | 'SUMMARY' | 'EDIT';
  /** The words that a person sees, or null. */
  readonly text: string | null;
  /** Pi's entry as JSON text, stored byte for byte. */
  readonly payload: string;
  /** Only of a summary: the first entry that it keeps. What it covers ends before that. */
  readonly firstKeptId?: EntryId | null;
  /** The words that a search finds; default: `text` of an answer. */
  readonly searchText?: string | null;
  /** A summary or a search result: it repeats words of other entries. */
  readonly copy?: CopyOfWords;
}

/** What is stored instead when entries were erased or edited since the attempt was claimed (its context may hold their old words). */
export interface CopyOfWords {
  readonly skeleton: string | null;
  /** The entries that a search result quotes. */
  readonly sourceIds: readonly EntryId[] | null;
}

export interface EndParams extends AttemptKey {
  readonly conversationId: ConversationId;
  readonly version: number;
  /** What the turn becomes unless it is already STOPPED. */
  readonly status: 'DONE' | 'FAILED';
  readonly error: { readonly code: string; readonly text: string; readonly detail: string | null } | null;
  readonly entries: readonly NewEntry[];
}

/** null: nothing was written (the attempt lost its run, or the version moved). */
export type EndResult = {
  readonly version: number;
  readonly turnId: TurnId;
  readonly status: 'DONE' | 'FAILED' | 'STOPPED';
  readonly entryIds: readonly EntryId[];
  readonly timing: TurnTiming;
} | null;

const endRow = timingRow.extend({
  version: z.number(),
  turn_id: z.string(),
  status: z.enum(['DONE', 'FAILED', 'STOPPED']),
  entry_ids: z.array(z.string()),
});

/** The entries of an end as the columns of a statement. */
function toColumns(entries: readonly NewEntry[]) {
  const column = <K extends keyof NewEntry>(key: K) => entries.map((entry) => entry[key] ?? null);
  const searched = ({ kind, text, searchText }: NewEntry) => (searchText === undefined && kind === 'ANSWER' ? text : (searchText ?? null));
  return sql.fragment`
    ${sql.array(column('id'), 'uuid')}, ${sql.array(column('kind'), 'text')}, ${sql.array(column('text'), 'text')},
    ${sql.array(column('payload'), 'text')}, ${sql.array(entries.map(searched), 'text')},
    ${sql.array(
      entries.map(({ copy }) => copy !== undefined),
      'bool',
    )},
    ${sql.array(
      entries.map(({ copy }) => copy?.skeleton ?? null),
      'text',
    )},
    ${sql.array(
      entries.map(({ copy }) => (copy?.sourceIds ? `{${copy.sourceIds.join(',')}}` : null)),
      'text',
    )}, ${sql.array(column('firstKeptId'), 'uuid')}`;
}

/** What each summary of an end covers, in path order: `kept` where the first entry stands that it keeps, `cover` up to where. */
const COVERAGE = sql.fragment`
  kept as (
  -- Where the first entry stands that a summary keeps: in the ledger at (turn_seq, seq), or the nth of this end. One that keeps nothing
  -- that is known here keeps what comes after itself. No row: a thread's summary that keeps entries of its parent covers none of its own.
  select g.id, coalesce(kt.question_seq, k.seq, claim.question_seq) as turn_seq, coalesce(k.seq, conv.seq_before + 1) as seq,
    case when k.id is null then coalesce(own.nth, g.nth) else 1 end as nth
  from given g cross join conv cross join claim left join given own on own.id = g.first_kept_id
    left join mentor_entry k on k.id = g.first_kept_id and k.conversation_id = conv.id left join mentor_turn kt on kt.id = k.turn_id
  where g.kind = 'SUMMARY'
    and not exists (select 1 from mentor_entry up where up.id = g.first_kept_id and up.conversation_id = conv.parent_conversation_id)
    ), cover as (
  -- The last entry before it, in path order; coverage starts at the first entry of the conversation.
  select kept.id, case when kept.nth > 1 then conv.seq_before + kept.nth - 1 else
    (select e.seq from mentor_entry e left join mentor_turn t on t.id = e.turn_id
     where e.conversation_id = conv.id and (coalesce(t.question_seq, e.seq), e.seq) < (kept.turn_seq, kept.seq)
     order by coalesce(t.question_seq, e.seq) desc, e.seq desc limit 1) end as to_seq
  from kept, conv`;

export async function endTurn(db: Executor, p: EndParams): Promise<EndResult> {
  const row = await db.maybeOne(sql.prepared('ledger_end_turn', endRow)`
    with moment as materialized (
      -- One for the answer and for the conversation: a reader who compares the two must not see an answer that is newer than itself.
      select clock_timestamp() as at
    ), claim as materialized (
      select r.id, r.turn_id, r.called_at, t.account_id, t.surface, t.status, t.question_seq, r.context_erasures, c.parent_conversation_id as main_id,
        q.erased_at is null as asked
      from agent_run r join mentor_turn t on t.id = r.turn_id join mentor_entry q on q.id = t.question_entry_id
        join mentor_conversation c on c.id = t.conversation_id
      where r.id = ${p.runId}::uuid and r.epoch = ${p.epoch}::int and r.sandbox_id = ${p.sandboxId}::uuid and r.state = 'LEASED'
        and ${sandboxLives}
    ), fence as materialized (
      select a.id, a.erasure_requested_at is null as may_write from account a join claim on claim.account_id = a.id for share of a
    ), tree as materialized (
      select m.erasures from fence, claim join mentor_conversation m on m.id = claim.main_id for key share of m
    ), given as materialized (
      select g.* from fence, claim, unnest(${toColumns(p.entries)})
        with ordinality as g(id, kind, text, payload, search_text, is_copy, skeleton, sources, first_kept_id, nth)
      where fence.may_write and claim.asked
    ), conv as (
      update mentor_conversation c set version = c.version + 1, last_seq = c.last_seq + (select count(*) from given),
        last_answer_at = case when exists (select 1 from given where kind = 'ANSWER' and text is not null) then moment.at
          else c.last_answer_at end
      from moment cross join claim cross join fence left join tree on true
      where c.id = ${p.conversationId}::uuid and c.version = ${p.version}::bigint
      returning c.id, c.workspace_id, c.parent_conversation_id, c.version, c.last_seq, c.last_seq - (select count(*) from given) as seq_before,
        coalesce(tree.erasures, c.erasures) > claim.context_erasures as stale
    ), turn as (
      update mentor_turn t set
        status = case when t.status = 'STOPPED' then 'STOPPED' else ${p.status}::text end,
        ended_at = coalesce(t.ended_at, moment.at),
        error_code = case when t.status <> 'STOPPED' then ${p.error?.code ?? null}::text end,
        error_text = case when t.status <> 'STOPPED' then ${p.error?.text ?? null}::text end,
        error_detail = case when t.status <> 'STOPPED' then ${p.error?.detail ?? null}::text end
      from moment, claim, conv where t.id = claim.turn_id
      returning t.id, t.status, t.surface, t.created_at, t.started_at, t.ended_at
    ), run as (
      update agent_run r set state = 'ENDED', ended_at = clock_timestamp(), lease_until = null, deadline_at = null, bound_at = null
      from turn where r.turn_id = turn.id
      returning r.id
    ), freed as (
      update turn_slot s set run_id = null from run where s.run_id = run.id
    ), ${COVERAGE}
    ), entry as (
      insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, search_text, payload, source_entry_ids,
        erased_at, from_seq, to_seq, created_at)
      select g.id, conv.workspace_id, conv.id, turn.id, conv.seq_before + g.nth, g.kind, claim.surface,
        g.text, g.search_text, case when conv.stale and g.is_copy then g.skeleton else g.payload end::json,
        case when not conv.stale then g.sources::uuid[] end, case when conv.stale and g.is_copy then clock_timestamp() end,
        case when cover.to_seq is not null then 1 end, cover.to_seq, moment.at
      from moment cross join given g cross join conv cross join turn cross join claim left join cover on cover.id = g.id
      returning id, kind, text, seq
    )
    select conv.version, turn.id as turn_id, turn.status, ${TURN_TIMES}, ${ATTEMPT_TIME},
      coalesce((select array_agg(e.id order by e.seq) from entry e where e.kind = 'ANSWER' and e.text is not null), '{}') as entry_ids
    from conv, turn, claim`);
  return row && toResult(row);
}

function toResult(row: z.infer<typeof endRow>): NonNullable<EndResult> {
  return {
    version: row.version,
    turnId: row.turn_id as TurnId,
    status: row.status,
    entryIds: row.entry_ids as EntryId[],
    timing: toTiming(row),
  };
}
