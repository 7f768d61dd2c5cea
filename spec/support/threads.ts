/**
 * Threads and stored entries as rows, for specs of what covers and what quotes what.
 */
import { type Database, sql } from '../../db/pool.ts';
import { type ConversationId, type EntryId, type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { type Person, run } from './ledger.ts';

/** A thread of the person's main conversation, forked at one of its entries. */
export async function makeThread(
  db: Database,
  person: Person,
  parent: { mainId: ConversationId; entryId: EntryId },
): Promise<ConversationId> {
  const id = uuidv7<'conversation'>();
  await run(
    db,
    sql.unsafe`insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id)
      values (${id}, ${person.workspaceId}, ${person.accountId}, ${parent.mainId}, ${parent.entryId}) returning id`,
  );
  return id;
}

export interface StoredEntry {
  readonly kind: 'QUESTION' | 'ANSWER' | 'TOOL_RESULT' | 'SYSTEM' | 'SUMMARY' | 'EDIT' | 'DIGEST';
  readonly text?: string | null;
  readonly payload?: string | null;
  readonly turnId?: TurnId;
  readonly toSeq?: number;
  readonly sourceIds?: readonly EntryId[];
}

/** The conversation's next entry, as if an end had stored it. */
export async function storeEntry(
  db: Database,
  { person, conversationId }: { person: Person; conversationId: ConversationId },
  entry: StoredEntry,
): Promise<EntryId> {
  const id = uuidv7<'entry'>();
  const { kind, text = null, payload = null, turnId = null, toSeq = null, sourceIds = null } = entry;
  const sources = sourceIds && `{${sourceIds.join(',')}}`;
  await run(
    db,
    sql.unsafe`
      with conv as (update mentor_conversation set last_seq = last_seq + 1, version = version + 1 where id = ${conversationId} returning last_seq)
      insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, search_text, payload, from_seq, to_seq, source_entry_ids)
      select ${id}, ${person.workspaceId}, ${conversationId}, ${turnId}, last_seq, ${kind}, 'app', ${text}, ${text}, ${payload}::json,
        case when ${toSeq}::int is null then null else 1 end, ${toSeq}, ${sources}::uuid[] from conv returning id`,
  );
  return id;
}

/** What a spec looks at in a stored row. */
export async function entryRow(db: Database, id: EntryId) {
  const [row] = await run(
    db,
    sql.unsafe`select text, search_text, payload::text as payload, erased_at is not null as erased, search_vector::text as vector,
      source_entry_ids::text as sources, kind, vote from mentor_entry where id = ${id}`,
  );
  return row as {
    text: string | null;
    search_text: string | null;
    payload: string | null;
    erased: boolean;
    vector: string | null;
    sources: string | null;
    kind: string;
    vote: number | null;
  };
}

/** Words that must be gone. */
export const CANARY = 'canary of the spec';

function piMessage(message: object): string {
  return JSON.stringify({ type: 'message', id: 'a1', parentId: null, timestamp: '2026-10-08T07:12:03.120Z', message });
}
/** An answer that calls a tool, with words in each place where Pi has some. */
export const CALL = piMessage({
  role: 'assistant',
  content: [
    { type: 'thinking', thinking: CANARY },
    { type: 'text', text: CANARY },
    { type: 'toolCall', id: 'call-1', name: 'bash', arguments: { command: CANARY } },
  ],
  stopReason: 'toolUse',
  usage: { input: 10, output: 5, totalTokens: 15, cost: { total: 0.1 } },
});
export const RESULT = piMessage({ role: 'toolResult', toolCallId: 'call-1', toolName: 'bash', content: [{ type: 'text', text: CANARY }] });
export const SUMMARY = JSON.stringify({
  type: 'compaction',
  id: 's1',
  parentId: null,
  timestamp: '2026-10-08T07:12:03.120Z',
  summary: CANARY,
});
