/**
 * Owns: for whom a turn's context is built: the workspace, the account, the conversation and the question of a run.
 */
import { z } from 'zod';
import type { AccountId, ConversationId, EntryId, RunId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

/** What sources and loaders are asked with. Times are ISO 8601 in UTC, by the database clock. */
export interface MentorContextRequest {
  readonly workspace: { readonly id: WorkspaceId; readonly name: string; readonly slug: string };
  readonly account: { readonly id: AccountId; readonly displayName: string; readonly timeZone: string };
  readonly conversationId: ConversationId;
  readonly turnId: TurnId;
  readonly questionEntryId: EntryId;
  readonly now: string;
}

const requestRow = z.object({
  workspace_id: z.string(),
  workspace_name: z.string(),
  workspace_slug: z.string(),
  account_id: z.string(),
  display_name: z.string(),
  time_zone: z.string(),
  conversation_id: z.string(),
  turn_id: z.string(),
  question_entry_id: z.string(),
  now: z.string(),
});

/** null: the run has no turn, or the account is no member of the workspace any more. */
export async function readContextRequest(db: Executor, runId: RunId): Promise<MentorContextRequest | null> {
  const row = await db.maybeOne(sql.prepared('context_request', requestRow)`
    select w.id as workspace_id, w.name as workspace_name, w.slug as workspace_slug, a.id as account_id, a.display_name, a.time_zone,
      t.conversation_id, t.id as turn_id, t.question_entry_id, clock_timestamp() as now
    from agent_run r join mentor_turn t on t.id = r.turn_id join account a on a.id = t.account_id
      join workspace w on w.id = t.workspace_id
      join workspace_member m on m.workspace_id = t.workspace_id and m.account_id = t.account_id and m.active and m.visible
    where r.id = ${runId}`);
  if (!row) return null;
  return {
    workspace: { id: row.workspace_id as WorkspaceId, name: row.workspace_name, slug: row.workspace_slug },
    account: { id: row.account_id as AccountId, displayName: row.display_name, timeZone: row.time_zone },
    conversationId: row.conversation_id as ConversationId,
    turnId: row.turn_id as TurnId,
    questionEntryId: row.question_entry_id as EntryId,
    now: row.now,
  };
}
