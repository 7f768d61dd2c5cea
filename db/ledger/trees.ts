/**
 * Owns: the lock of a conversation tree against whoever takes words out of it, and what else holds those words.
 * An erasure or an edit holds the main conversation row of each tree FOR UPDATE before it reads. The end of a turn holds the same row FOR KEY
 * SHARE (or updates it), so an end has either stored its copies before the read below, or it sees the raised count of erasures
 * and stores none (db/ledger/end-turn.ts).
 * rule: R12 (the account rows are held FOR SHARE, before the conversations)
 */
import { z } from 'zod';
import type { ConversationId, EntryId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from '../web/membership.ts';

/** Which entries a caller may name: all, or those that this member is shown. */
export type Reach = 'all' | MemberKey;

export interface LockedTrees {
  /** Main conversations, locked. */
  readonly mainIds: readonly ConversationId[];
  /** No owner has asked to be erased. */
  readonly mayWrite: boolean;
}

const mainRow = z.object({ id: z.string(), may_write: z.boolean() });

/** Locks the trees of these entries: accounts, then main conversations, each in order of id. */
export async function lockTrees(tx: Executor, ids: readonly EntryId[], reach: Reach): Promise<LockedTrees> {
  const [workspaceId, accountId] = reach === 'all' ? [null, null] : [reach.workspaceId, reach.accountId];
  const rows = await tx.any(sql.prepared('ledger_lock_trees', mainRow)`
    with asked as materialized (
      select distinct coalesce(c.parent_conversation_id, c.id) as main_id, c.account_id
      from mentor_entry e join mentor_conversation c on c.id = e.conversation_id
      where e.id = any(${sql.array(ids, 'uuid')})
        and (${accountId}::uuid is null or (c.account_id = ${accountId}::uuid and c.workspace_id = ${workspaceId}::uuid))
    ), fence as materialized (
      select a.id, a.erasure_requested_at is null as may_write from account a
      where a.id in (select account_id from asked) order by a.id for share
    ), main as materialized (
      select m.id, m.account_id from mentor_conversation m
      where m.id in (select main_id from asked) and (select count(*) from fence) > 0 order by m.id for update
    )
    select main.id, fence.may_write from main join fence on fence.id = main.account_id`);
  return { mainIds: rows.map((row) => row.id as ConversationId), mayWrite: rows.every((row) => row.may_write) };
}

/** An entry that is there, and is not erased. */
export interface LiveEntry {
  readonly id: EntryId;
  readonly conversationId: ConversationId;
  /** `named`: it was asked for. `copy`: a search result that quotes a named one, or a summary that covers a named one or such a result. */
  readonly why: 'named' | 'copy';
  readonly payload: string | null;
}

const liveRow = z.object({ id: z.string(), conversation_id: z.string(), named: z.boolean(), payload: z.string().nullable() });

/**
 * The named entries and every copy of their words, in trees that are locked.
 * A summary covers what is up to its `to_seq`, or up to itself where that is not known, in path order: groups by turn in the order of their
 * first seq, then seq. A thread's summary covers the main conversation up to the thread's parent.
 */
export async function readWithCopies(
  tx: Executor,
  ids: readonly EntryId[],
  { mainIds, reach }: { readonly mainIds: readonly ConversationId[]; readonly reach: Reach },
): Promise<readonly LiveEntry[]> {
  const shownOnly = reach !== 'all';
  const rows = await tx.any(sql.prepared('ledger_read_with_copies', liveRow)`
    with tree as materialized (
      select c.id, c.parent_conversation_id, c.parent_entry_id from mentor_conversation c
      where c.id = any(${sql.array(mainIds, 'uuid')}) or c.parent_conversation_id = any(${sql.array(mainIds, 'uuid')})
    ), named as materialized (
      select e.id, e.conversation_id, coalesce(t.question_seq, e.seq) as grp, e.seq
      from mentor_entry e join tree on tree.id = e.conversation_id left join mentor_turn t on t.id = e.turn_id
      where e.id = any(${sql.array(ids, 'uuid')}) and e.erased_at is null
        and (not ${shownOnly}::boolean or e.kind in ('QUESTION', 'DIGEST') or (e.kind = 'ANSWER' and e.text is not null))
    ), quoting as materialized (
      select r.id, r.conversation_id, coalesce(t.question_seq, r.seq) as grp, r.seq
      from mentor_entry r join tree on tree.id = r.conversation_id left join mentor_turn t on t.id = r.turn_id
      where r.source_entry_ids && (select array_agg(id) from named)
    ), copy as (
      select s.id from (select * from named union all select * from quoting) x
        join tree d on d.id = x.conversation_id or d.parent_conversation_id = x.conversation_id
        join mentor_entry s on s.conversation_id = d.id and s.kind = 'SUMMARY' and s.erased_at is null
        left join mentor_turn st on st.id = s.turn_id
        left join mentor_entry b on b.conversation_id = s.conversation_id and b.seq = s.to_seq left join mentor_turn bt on bt.id = b.turn_id
        left join mentor_entry p on p.id = d.parent_entry_id left join mentor_turn pt on pt.id = p.turn_id
      where case when d.id = x.conversation_id
        then (x.grp, x.seq) <= (coalesce(bt.question_seq, b.seq, st.question_seq, s.seq), coalesce(b.seq, s.seq))
        else (x.grp, x.seq) <= (coalesce(pt.question_seq, p.seq), p.seq) end
      union
      select id from quoting
    ), gone as (select id, true as named from named union all select id, false from copy where id not in (select id from named))
    select e.id, e.conversation_id, gone.named, e.payload::text as payload from gone join mentor_entry e on e.id = gone.id
    order by e.conversation_id, e.seq`);
  return rows.map((row) => ({
    id: row.id as EntryId,
    conversationId: row.conversation_id as ConversationId,
    why: row.named ? 'named' : 'copy',
    payload: row.payload,
  }));
}
