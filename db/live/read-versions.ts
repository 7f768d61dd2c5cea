/**
 * Owns: the one read of the catch-up sweep: the versions of conversations that somebody here looks at, or that an actor here holds.
 */
import { z } from 'zod';
import type { AccountId, ConversationId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export interface ConversationVersion {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  readonly conversationId: ConversationId;
  readonly version: number;
}

const versionRow = z.object({ id: z.string(), workspace_id: z.string(), account_id: z.string(), version: z.number() });

/** Versions of the conversations named by `ids`, and of the main conversations and threads of `accounts`. Missing ones are left out. */
export async function readVersions(
  db: Executor,
  ids: readonly string[],
  accounts: readonly { readonly workspaceId: WorkspaceId; readonly accountId: AccountId }[],
): Promise<readonly ConversationVersion[]> {
  if (ids.length === 0 && accounts.length === 0) return [];
  const workspaceIds = accounts.map(({ workspaceId }) => workspaceId);
  const accountIds = accounts.map(({ accountId }) => accountId);
  const rows = await db.any(sql.prepared('live_read_versions', versionRow)`
    with main as materialized (
      select c.id, c.workspace_id, c.account_id, c.version
      from unnest(${sql.array(workspaceIds, 'uuid')}, ${sql.array(accountIds, 'uuid')}) as asked(workspace_id, account_id)
      join mentor_conversation c using (workspace_id, account_id) where c.parent_conversation_id is null
    )
    select * from main
    union
    select t.id, t.workspace_id, t.account_id, t.version from main join mentor_conversation t on t.parent_conversation_id = main.id
    union
    select c.id, c.workspace_id, c.account_id, c.version from mentor_conversation c where c.id = any(${sql.array(ids, 'uuid')})`);
  return rows.map((row) => ({
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    conversationId: row.id as ConversationId,
    version: row.version,
  }));
}
