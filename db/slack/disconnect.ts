/**
 * Owns: the end of a connection. First, alone and committed, the connection's row says ENDING: a question holds that row FOR SHARE, so from
 * then on none is stored, and each that was stored is there to be read. Then everything that was written in Slack in the workspace is erased,
 * batch by batch, with the locks of any erasure (person, conversation …); at last the connection is ENDED. A crash anywhere is taken up again.
 */
import { z } from 'zod';
import type { EntryId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type ChangedConversation, ERASE_BATCH_MAX, eraseEntries } from '../ledger/erase.ts';
import { type Database, type Executor, sql } from '../pool.ts';

const idRow = z.object({ id: z.string() });

/** What waits for the team is parked, and what it has sent is forgotten. False: the team has no active connection (a repeat changes nothing). */
export function beginDisconnect(db: Database, teamId: string, why: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    const row = await tx.maybeOne(sql.type(idRow)`
      update slack_connection set state = 'ENDING', bot_token_sealed = null, why = ${why} where team_id = ${teamId} and state = 'ACTIVE' returning id`);
    if (!row) return false;
    await tx.any(sql.type(idRow)`
      with waiting as materialized (
        select id from outbox_action where team_id = ${teamId} and state in ('PENDING', 'RETRY') order by id for update
      )
      update outbox_action o set state = 'PARKED', moved_by = 'server', reason = 'disconnected', due_at = null from waiting where o.id = waiting.id
      returning o.id`);
    return true;
  });
}

const endingRow = z.object({ id: z.string(), workspace_id: z.string(), team_id: z.string() });

export interface EndingConnection {
  readonly id: string;
  readonly workspaceId: WorkspaceId;
  readonly teamId: string;
}

/** Connections whose words are still being erased. */
export async function endingConnections(db: Executor): Promise<readonly EndingConnection[]> {
  const rows = await db.any(sql.prepared('slack_ending', endingRow)`
    select id, workspace_id, team_id from slack_connection where state = 'ENDING' order by id`);
  return rows.map((row) => ({ id: row.id, workspaceId: row.workspace_id as WorkspaceId, teamId: row.team_id }));
}

/**
 * Erases one batch of what was written in Slack in the workspace; questions first, since an erased question stops its turn, and a stopped turn
 * stores nothing more. null: nothing is left.
 */
export async function eraseSlackBatch(
  db: Database,
  { workspaceId, graceMs }: { readonly workspaceId: WorkspaceId; readonly graceMs: number },
): Promise<readonly ChangedConversation[] | null> {
  const rows = await db.any(sql.prepared('slack_written', idRow)`
    select id from mentor_entry where workspace_id = ${workspaceId} and surface = 'slack' and erased_at is null
    order by kind <> 'QUESTION', id limit ${ERASE_BATCH_MAX}::int`);
  if (rows.length === 0) return null;
  const ids = rows.map(({ id }) => id as EntryId);
  return db.transaction((tx) => eraseEntries(tx, { ids, reach: 'all', graceMs }));
}

/** Everything is erased. */
export async function finishDisconnect(db: Executor, { id, teamId }: EndingConnection): Promise<void> {
  await db.any(sql.type(idRow)`
    with forgotten as (
      update slack_event set payload = null, done_at = clock_timestamp(), outcome = 'disconnected', lease_until = null
      where team_id = ${teamId} and done_at is null
    )
    update slack_connection set state = 'ENDED', ended_at = clock_timestamp() where id = ${id} and state = 'ENDING' returning id`);
}
