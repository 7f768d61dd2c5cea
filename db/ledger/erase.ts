/**
 * Owns: erasing entries and every copy of their words, in one transaction of three statements: lock the trees, read what goes, write.
 * An erased row keeps its place (id, seq, kind, turn) and no words. An erased question stops its queued or running turn: the end of that turn
 * stores nothing. Usage rows stay: they hold no words.
 * Does not own: which entries (a person's wish, retention, the erasure of a person), telling the others after the commit (actors).
 */
import { z } from 'zod';
import type { AccountId, ConversationId, EntryId, RunId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { piSkeleton } from '../../src/kernel/pi-skeleton.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from '../web/membership.ts';
import { lockTrees, type Reach, readWithCopies } from './trees.ts';

/** Entries that one call takes; what copies them comes on top. */
export const ERASE_BATCH_MAX = 200;

export interface EraseRequest {
  /** At most ERASE_BATCH_MAX. */
  readonly ids: readonly EntryId[];
  /** A member erases what they are shown of their own; what is not theirs is left alone. */
  readonly reach: Reach;
  /** How long the loop of a running turn has to end it. */
  readonly graceMs: number;
}

/** A conversation after the write: what a change must tell. */
export interface ChangedConversation extends MemberKey {
  readonly conversationId: ConversationId;
  readonly version: number;
  /** Shown entries that changed. */
  readonly entryIds: readonly EntryId[];
  /** Turns that were stopped. */
  readonly turnIds: readonly TurnId[];
  readonly sealedRunIds: readonly RunId[];
}

/** Erases in the caller's transaction. Entries that are erased already change nothing. */
export async function eraseEntries(tx: Executor, { ids, reach, graceMs }: EraseRequest): Promise<readonly ChangedConversation[]> {
  if (ids.length > ERASE_BATCH_MAX) throw new RangeError(`at most ${ERASE_BATCH_MAX} entries are erased at once`);
  const { mainIds } = await lockTrees(tx, ids, reach);
  if (mainIds.length === 0) return [];
  const gone = await readWithCopies(tx, ids, { mainIds, reach });
  if (gone.length === 0) return [];
  return writeErased(tx, { gone, mainIds, touched: null, graceMs });
}

export interface ErasedWrite {
  readonly gone: readonly { readonly id: EntryId; readonly payload: string | null }[];
  /** Locked main conversations whose count of erasures rises. */
  readonly mainIds: readonly ConversationId[];
  /** A shown entry that changed and stays. */
  readonly touched: EntryId | null;
  readonly graceMs: number;
}

const changedRow = z.object({
  id: z.string(),
  workspace_id: z.string(),
  account_id: z.string(),
  version: z.number(),
  entry_ids: z.array(z.string()),
  turn_ids: z.array(z.string()),
  sealed_run_ids: z.array(z.string()),
});

/** The write itself: the trees are locked, and nothing else can have been stored since `gone` was read. */
export async function writeErased(tx: Executor, { gone, mainIds, touched, graceMs }: ErasedWrite): Promise<readonly ChangedConversation[]> {
  const ids = gone.map(({ id }) => id);
  const skeletons = gone.map(({ payload }) => piSkeleton(payload));
  const rows = await tx.any(sql.prepared('ledger_erase', changedRow)`
    with entry as materialized (
      select e.id, e.conversation_id, e.turn_id, e.kind, g.skeleton, e.id = ${touched}::uuid as stays, e.kind <> 'SUMMARY' and e.text is not null as shown
      from (select * from unnest(${sql.array(ids, 'uuid')}, ${sql.array(skeletons, 'text')}) as g(id, skeleton)
        union all select ${touched}::uuid, null where ${touched}::uuid is not null) g
      join mentor_entry e on e.id = g.id where e.erased_at is null
    ), locked as materialized (
      select c.id from mentor_conversation c
      where c.id = any(${sql.array(mainIds, 'uuid')}) or c.id in (select conversation_id from entry) order by c.id for update
    ), conv as (
      update mentor_conversation c set
        version = c.version + (case when exists (select 1 from entry e where e.conversation_id = c.id) then 1 else 0 end),
        erasures = c.erasures + (case when c.parent_conversation_id is null then 1 else 0 end)
      from locked where c.id = locked.id
      returning c.id, c.workspace_id, c.account_id, c.version
    ), turn as (
      update mentor_turn t set page = null,
        status = case when t.status in ('QUEUED', 'RUNNING') then 'STOPPED' else t.status end, ended_at = coalesce(t.ended_at, clock_timestamp())
      from entry e join conv on conv.id = e.conversation_id
      where t.id = e.turn_id and t.question_entry_id = e.id and not coalesce(e.stays, false)
      returning t.id, t.conversation_id
    ), run as (
      update agent_run r set
        state = case when r.state = 'LEASED' then 'LEASED' else 'ENDED' end,
        ended_at = case when r.state = 'LEASED' then null else clock_timestamp() end,
        bound_at = case when r.state = 'LEASED' then least(r.bound_at, clock_timestamp() + ${graceMs}::int * interval '1 ms') end,
        lease_until = case when r.state = 'LEASED' then least(r.lease_until, clock_timestamp() + ${graceMs}::int * interval '1 ms') end
      from turn where r.turn_id = turn.id and r.state <> 'ENDED'
      returning r.id, r.turn_id, r.conversation_id, r.state
    ), erased as (
      update mentor_entry m set text = null, search_text = null, source_entry_ids = null, payload = e.skeleton::json, erased_at = clock_timestamp()
      from entry e join conv on conv.id = e.conversation_id where m.id = e.id and not coalesce(e.stays, false)
    )
    select conv.*,
      coalesce((select array_agg(e.id) from entry e where e.conversation_id = conv.id and e.shown), '{}') as entry_ids,
      coalesce((select array_agg(r.turn_id) from run r where r.conversation_id = conv.id), '{}') as turn_ids,
      coalesce((select array_agg(r.id) from run r where r.conversation_id = conv.id and r.state = 'LEASED'), '{}') as sealed_run_ids
    from conv where conv.id in (select conversation_id from entry) order by conv.id`);
  return rows.map((row) => ({
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    conversationId: row.id as ConversationId,
    version: row.version,
    entryIds: row.entry_ids as EntryId[],
    turnIds: row.turn_ids as TurnId[],
    sealedRunIds: row.sealed_run_ids as RunId[],
  }));
}
