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
import type { AttemptKey } from './fence.ts';

export interface NewEntry {
  readonly id: EntryId;
  readonly kind: 'ANSWER' | 'TOOL_RESULT' | 'SYSTEM' | 'SUMMARY' | 'EDIT';
  /** The words that a person sees, or null. */
  readonly text: string | null;
  /** Pi's entry as JSON text, stored byte for byte. */
  readonly payload: string;
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

/** For metrics: milliseconds since the question was written, by the database clock; `queueWaitMs` is up to the first claim. */
export interface TurnTiming {
  readonly surface: 'app' | 'slack';
  readonly queueWaitMs: number | null;
  readonly durationMs: number;
}

/** null: nothing was written (the attempt lost its run, or the version moved). */
export type EndResult = {
  readonly version: number;
  readonly turnId: TurnId;
  readonly status: 'DONE' | 'FAILED' | 'STOPPED';
  readonly entryIds: readonly EntryId[];
  readonly timing: TurnTiming;
} | null;

const endRow = z.object({
  version: z.number(),
  turn_id: z.string(),
  status: z.enum(['DONE', 'FAILED', 'STOPPED']),
  entry_ids: z.array(z.string()),
  surface: z.enum(['app', 'slack']),
  queue_wait_ms: z.number().nullable(),
  duration_ms: z.number(),
});

export async function endTurn(db: Executor, p: EndParams): Promise<EndResult> {
  const list = <K extends keyof NewEntry>(key: K) => p.entries.map((entry) => entry[key]);
  const searchTexts = p.entries.map((entry) =>
    entry.searchText === undefined && entry.kind === 'ANSWER' ? entry.text : (entry.searchText ?? null),
  );
  const isCopy = p.entries.map(({ copy }) => copy !== undefined);
  const skeletons = p.entries.map(({ copy }) => copy?.skeleton ?? null);
  const sources = p.entries.map(({ copy }) => copy?.sourceIds && `{${copy.sourceIds.join(',')}}`).map((ids) => ids ?? null);
  const row = await db.maybeOne(sql.prepared('ledger_end_turn', endRow)`
    with claim as materialized (
      select r.id, r.turn_id, t.account_id, t.surface, t.status, r.context_erasures, c.parent_conversation_id as main_id,
        q.erased_at is null as asked
      from agent_run r join mentor_turn t on t.id = r.turn_id join mentor_entry q on q.id = t.question_entry_id
        join mentor_conversation c on c.id = t.conversation_id
      where r.id = ${p.runId}::uuid and r.epoch = ${p.epoch}::int and r.sandbox_id = ${p.sandboxId}::uuid and r.state = 'LEASED'
    ), fence as materialized (
      select a.id, a.erasure_requested_at is null as may_write from account a join claim on claim.account_id = a.id for share of a
    ), tree as materialized (
      select m.erasures from fence, claim join mentor_conversation m on m.id = claim.main_id for key share of m
    ), given as materialized (
      select g.* from fence, claim, unnest(${sql.array(list('id'), 'uuid')}, ${sql.array(list('kind'), 'text')}, ${sql.array(list('text'), 'text')},
        ${sql.array(list('payload'), 'text')}, ${sql.array(searchTexts, 'text')}, ${sql.array(isCopy, 'bool')}, ${sql.array(skeletons, 'text')},
        ${sql.array(sources, 'text')}) with ordinality as g(id, kind, text, payload, search_text, is_copy, skeleton, sources, nth)
      where fence.may_write and claim.asked
    ), conv as (
      update mentor_conversation c set version = c.version + 1, last_seq = c.last_seq + (select count(*) from given),
        last_answer_at = case when exists (select 1 from given where kind = 'ANSWER' and text is not null) then clock_timestamp()
          else c.last_answer_at end
      from claim cross join fence left join tree on true
      where c.id = ${p.conversationId}::uuid and c.version = ${p.version}::bigint
      returning c.id, c.workspace_id, c.version, c.last_seq, coalesce(tree.erasures, c.erasures) > claim.context_erasures as stale
    ), turn as (
      update mentor_turn t set
        status = case when t.status = 'STOPPED' then 'STOPPED' else ${p.status}::text end,
        ended_at = coalesce(t.ended_at, clock_timestamp()),
        error_code = case when t.status <> 'STOPPED' then ${p.error?.code ?? null}::text end,
        error_text = case when t.status <> 'STOPPED' then ${p.error?.text ?? null}::text end,
        error_detail = case when t.status <> 'STOPPED' then ${p.error?.detail ?? null}::text end
      from claim, conv where t.id = claim.turn_id
      returning t.id, t.status, t.surface, (extract(epoch from t.started_at - t.created_at) * 1000)::int as queue_wait_ms,
        (extract(epoch from t.ended_at - t.created_at) * 1000)::int as duration_ms
    ), run as (
      update agent_run r set state = 'ENDED', ended_at = clock_timestamp(), lease_until = null, deadline_at = null, bound_at = null
      from turn where r.turn_id = turn.id
      returning r.id
    ), freed as (
      update turn_slot s set run_id = null from run where s.run_id = run.id
    ), entry as (
      insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, search_text, payload, source_entry_ids,
        erased_at)
      select g.id, conv.workspace_id, conv.id, turn.id, conv.last_seq - (select count(*) from given) + g.nth, g.kind, claim.surface,
        g.text, g.search_text, case when conv.stale and g.is_copy then g.skeleton else g.payload end::json,
        case when not conv.stale then g.sources::uuid[] end, case when conv.stale and g.is_copy then clock_timestamp() end
      from given g, conv, turn, claim
      returning id, kind, text, seq
    )
    select conv.version, turn.id as turn_id, turn.status, turn.surface, turn.queue_wait_ms, turn.duration_ms,
      coalesce((select array_agg(e.id order by e.seq) from entry e where e.kind = 'ANSWER' and e.text is not null), '{}') as entry_ids
    from conv, turn`);
  if (!row) return null;
  const timing = { surface: row.surface, queueWaitMs: row.queue_wait_ms, durationMs: row.duration_ms };
  return {
    version: row.version,
    turnId: row.turn_id as TurnId,
    status: row.status,
    entryIds: row.entry_ids as EntryId[],
    timing,
  };
}
