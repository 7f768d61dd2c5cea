/**
 * Owns: entries as DTOs. Shown are questions, digests and answers with words; erased ones stay as empty places.
 * Tool results, system entries, summaries and edits are never shown.
 */
import { z } from 'zod';
import type { Entry, EntryPage } from '../../src/contract/web.ts';
import type { AccountId, ConversationId, EntryId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from './membership.ts';
import { readTurns } from './read-turns.ts';

/** An entry and whose it is. */
export interface OwnedEntry extends MemberKey {
  readonly entry: Entry;
}

const KIND = { QUESTION: 'question', ANSWER: 'answer', DIGEST: 'digest' } as const;

export const entryRow = z.object({
  id: z.string(),
  conversation_id: z.string(),
  seq: z.number(),
  turn_id: z.string().nullable(),
  kind: z.enum(['QUESTION', 'ANSWER', 'DIGEST']),
  surface: z.enum(['app', 'slack']),
  text: z.string().nullable(),
  created_at: z.string(),
  erased_at: z.string().nullable(),
  vote: z.number().nullable(),
});
const ownedEntryRow = entryRow.extend({ workspace_id: z.string(), account_id: z.string() });
/** The conversation exists and has no entry on the page: one row without an entry. */
const pageRow = entryRow.or(z.object({ id: z.null() }));

export const entryColumns = sql.fragment`e.id, e.conversation_id, e.seq, e.turn_id, e.kind, e.surface, e.text, e.created_at, e.erased_at, e.vote`;
export const shownEntry = sql.fragment`(e.kind in ('QUESTION', 'DIGEST') or (e.kind = 'ANSWER' and (e.text is not null or e.erased_at is not null)))`;

export function toEntry(row: z.infer<typeof entryRow>): Entry {
  const text = row.text ?? '';
  return {
    id: row.id,
    conversationId: row.conversation_id,
    seq: row.seq,
    turnId: row.turn_id,
    kind: KIND[row.kind],
    surface: row.surface,
    text,
    parts: text === '' ? [] : [{ type: 'text', text }],
    createdAt: row.created_at,
    erasedAt: row.erased_at,
    vote: row.vote === null ? null : row.vote > 0 ? 'up' : 'down',
  };
}

/** Those of the entries that are shown, in order of `seq`, each with its owner. */
export async function readOwnedEntries(db: Executor, ids: readonly string[]): Promise<readonly OwnedEntry[]> {
  if (ids.length === 0) return [];
  const rows = await db.any(sql.prepared('web_read_entries', ownedEntryRow)`
    select ${entryColumns}, c.workspace_id, c.account_id
    from mentor_entry e join mentor_conversation c on c.id = e.conversation_id
    where e.id = any(${sql.array(ids, 'uuid')}) and ${shownEntry}
    order by e.conversation_id, e.seq`);
  return rows.map((row) => ({
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    entry: toEntry(row),
  }));
}

/** Those of the entries that are shown, in order of `seq`. */
export async function readEntries(db: Executor, ids: readonly string[]): Promise<readonly Entry[]> {
  return (await readOwnedEntries(db, ids)).map(({ entry }) => entry);
}

/** The member's own entry, or null: another account's entry is not there for them. rule: R16 */
export async function readEntryOf(db: Executor, member: MemberKey, id: EntryId): Promise<Entry | null> {
  const [owned] = await readOwnedEntries(db, [id]);
  return owned?.workspaceId === member.workspaceId && owned.accountId === member.accountId ? owned.entry : null;
}

export interface PageRequest {
  readonly conversationId: ConversationId;
  /** Only entries with a smaller `seq`; null: the newest page. */
  readonly before: number | null;
  readonly limit: number;
}

/** Entries behind a `seq`, oldest first, so that a page can be read on from there; null when there is no such conversation of theirs. rule: R16 */
export async function readPageAfter(
  db: Executor,
  member: MemberKey,
  { conversationId, after, limit }: { readonly conversationId: ConversationId; readonly after: number; readonly limit: number },
): Promise<EntryPage | null> {
  const rows = await db.any(sql.prepared('web_read_page_after', pageRow)`
    select e.* from mentor_conversation c left join lateral (
      select ${entryColumns} from mentor_entry e
      where e.conversation_id = c.id and e.seq > ${after}::bigint and ${shownEntry}
      order by e.seq limit ${limit + 1}::int
    ) e on true
    where c.id = ${conversationId} and c.workspace_id = ${member.workspaceId} and c.account_id = ${member.accountId}
    order by e.seq`);
  if (rows.length === 0) return null;
  const found = entriesOf(rows);
  const entries = found.slice(0, limit);
  const nextAfter = found.length > limit ? (entries.at(-1)?.seq ?? null) : null;
  return { entries, nextBefore: entries[0]?.seq ?? null, nextAfter, turns: await turnsOf(db, entries) };
}

function entriesOf(rows: readonly z.infer<typeof pageRow>[]): readonly Entry[] {
  return rows.filter((row): row is z.infer<typeof entryRow> => row.id !== null).map(toEntry);
}

async function turnsOf(db: Executor, entries: readonly Entry[]): Promise<EntryPage['turns']> {
  return [...(await readTurns(db, [...new Set(entries.flatMap((entry) => entry.turnId ?? []))]))];
}

/** A page of the member's own conversation, newest page first; null when there is no such conversation of theirs. rule: R16 */
export async function readPage(db: Executor, member: MemberKey, page: PageRequest): Promise<EntryPage | null> {
  const rows = await db.any(sql.prepared('web_read_page', pageRow)`
    select e.* from mentor_conversation c left join lateral (
      select ${entryColumns} from mentor_entry e
      where e.conversation_id = c.id and e.seq < ${page.before ?? Number.MAX_SAFE_INTEGER}::bigint and ${shownEntry}
      order by e.seq desc limit ${page.limit + 1}::int
    ) e on true
    where c.id = ${page.conversationId} and c.workspace_id = ${member.workspaceId} and c.account_id = ${member.accountId}
    order by e.seq desc`);
  if (rows.length === 0) return null;
  const found = entriesOf(rows);
  const entries = found.slice(0, page.limit).reverse();
  const nextBefore = found.length > page.limit ? (entries[0]?.seq ?? null) : null;
  return { entries, nextBefore, turns: await turnsOf(db, entries) };
}
