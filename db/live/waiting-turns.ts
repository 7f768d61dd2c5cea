/**
 * Owns: which turns a change of the slots can concern (seed "MentorTurnWaits"): those that a server may start.
 */
import { z } from 'zod';
import type { AccountId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export interface WaitingTurn {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  readonly turnId: TurnId;
}

const waitingRow = z.object({ id: z.string(), workspace_id: z.string(), account_id: z.string() });

/** Claimable turns of `accounts`, newest first, at most `turnsMax`. */
export async function readWaitingTurns(
  db: Executor,
  accounts: readonly { readonly workspaceId: WorkspaceId; readonly accountId: AccountId }[],
  turnsMax: number,
): Promise<readonly WaitingTurn[]> {
  if (accounts.length === 0) return [];
  const workspaceIds = accounts.map(({ workspaceId }) => workspaceId);
  const accountIds = accounts.map(({ accountId }) => accountId);
  const rows = await db.any(sql.prepared('live_waiting_turns', waitingRow)`
    select c.id, t.workspace_id, t.account_id
    from unnest(${sql.array(workspaceIds, 'uuid')}, ${sql.array(accountIds, 'uuid')}) as asked(workspace_id, account_id)
    join mentor_turn t using (workspace_id, account_id) join claimable_turn c on c.id = t.id
    where t.status = 'QUEUED'
    order by t.created_at desc limit ${turnsMax}::int`);
  return rows.map((row) => ({
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    turnId: row.id as TurnId,
  }));
}
