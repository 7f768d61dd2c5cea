/**
 * Owns: a whole conversation for its owner, in pages of bounded size, in the order in which it is read: each question with its answers.
 * Each page is a statement of its own that asks again who the owner is and whether they are still a member; what was erased since the page
 * before is an empty place. rule: R16
 */
import { z } from 'zod';
import type { Entry, Turn } from '../../src/contract/web.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from './membership.ts';
import { entryColumns, entryRow, shownEntry, toEntry } from './read-entries.ts';

export interface ExportHead {
  readonly conversationId: ConversationId;
  /** What comes after it is written while the export runs, and is left out. */
  readonly lastSeq: number;
  readonly createdAt: string;
  readonly exportedAt: string;
  readonly workspaceName: string;
  readonly displayName: string;
  readonly timeZone: string;
}

/** An entry and how its turn ended; the turn is null for an entry without one. */
export interface ExportedEntry {
  readonly entry: Entry;
  readonly turn: Pick<Turn, 'status' | 'error'> | null;
}

/** Questions (and digests) on one page, each with all of its answers. */
const PAGE_GROUPS = 20;

const headRow = z.object({
  id: z.string(),
  last_seq: z.number(),
  created_at: z.string(),
  exported_at: z.string(),
  workspace_name: z.string(),
  display_name: z.string(),
  time_zone: z.string(),
});

/** @param conversationId null: the main conversation. Returns null when the account has no such conversation, or may not see it now. */
export async function readExportHead(db: Executor, member: MemberKey, conversationId: ConversationId | null): Promise<ExportHead | null> {
  const row = await db.maybeOne(sql.prepared('web_export_head', headRow)`
    select c.id, c.last_seq, c.created_at, clock_timestamp() as exported_at, w.name as workspace_name, a.display_name, a.time_zone
    from mentor_conversation c join workspace w on w.id = c.workspace_id join account a on a.id = c.account_id
    join workspace_member m on m.workspace_id = c.workspace_id and m.account_id = c.account_id and m.active and m.visible
    where c.workspace_id = ${member.workspaceId} and c.account_id = ${member.accountId}
      and case when ${conversationId}::uuid is null then c.parent_conversation_id is null else c.id = ${conversationId}::uuid end`);
  return (
    row && {
      conversationId: row.id as ConversationId,
      lastSeq: row.last_seq,
      createdAt: row.created_at,
      exportedAt: row.exported_at,
      workspaceName: row.workspace_name,
      displayName: row.display_name,
      timeZone: row.time_zone,
    }
  );
}

const exportedRow = entryRow.extend({
  group_seq: z.number(),
  status: z.enum(['QUEUED', 'RUNNING', 'DONE', 'STOPPED', 'FAILED']).nullable(),
  error_code: z.string().nullable(),
  error_text: z.string().nullable(),
});

/** The next page; empty at the end, and when the account may no longer see the conversation. */
async function readGroups(
  db: Executor,
  member: MemberKey,
  page: { conversationId: ConversationId; after: number; lastSeq: number },
): Promise<readonly z.infer<typeof exportedRow>[]> {
  return db.any(sql.prepared('web_export_page', exportedRow)`
    with leader as materialized (
      select e.id, e.seq, e.turn_id
      from mentor_conversation c
      join workspace_member m on m.workspace_id = c.workspace_id and m.account_id = c.account_id and m.active and m.visible
      join mentor_entry e on e.conversation_id = c.id
      where c.id = ${page.conversationId} and c.workspace_id = ${member.workspaceId} and c.account_id = ${member.accountId}
        and e.seq > ${page.after}::bigint and e.seq <= ${page.lastSeq}::bigint and e.kind in ('QUESTION', 'DIGEST')
      order by e.seq limit ${PAGE_GROUPS}
    )
    select ${entryColumns}, g.group_seq, t.status, t.error_code, t.error_text
    from (
      select id, seq as group_seq from leader
      union all
      select a.id, l.seq from leader l join mentor_entry a on a.turn_id = l.turn_id and a.kind = 'ANSWER' and a.seq <= ${page.lastSeq}::bigint
    ) g
    join mentor_entry e on e.id = g.id
    left join mentor_turn t on t.id = e.turn_id
    where ${shownEntry}
    order by g.group_seq, e.seq`);
}

/**
 * Pages of a conversation, oldest first; the next one is read when it is asked for. Throws when the conversation is no longer there for this
 * account: half of it must not look like all of it.
 */
export async function* exportPages(db: Executor, member: MemberKey, head: ExportHead): AsyncGenerator<readonly ExportedEntry[]> {
  const { conversationId, lastSeq } = head;
  for (let after = 0; ; ) {
    const rows = await readGroups(db, member, { conversationId, after, lastSeq });
    const last = rows.at(-1);
    if (last === undefined) {
      if (await readExportHead(db, member, conversationId)) return;
      throw new RuntimeFault('CONVERSATION_NOT_FOUND', 'The conversation is no longer there for this account.');
    }
    after = last.group_seq;
    yield rows.map((row) => {
      const error = row.error_code === null || row.error_text === null ? null : { code: row.error_code, text: row.error_text };
      return { entry: toEntry(row), turn: row.status === null ? null : { status: row.status, error } };
    });
  }
}
