/**
 * Owns: whether a member lets an AI model work for them (workspace_member.ai_allowed). Admission reads the same column (the function
 * turn_admission): what is written here counts from the next turn that starts, also for one that waits.
 */
import { z } from 'zod';
import type { AccountId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

/** Sets it for the account in one workspace, or in all of its own. Returns in how many. */
export async function allowAi(
  db: Executor,
  { accountId, workspaceId }: { readonly accountId: string; readonly workspaceId: string | null },
  allowed: boolean,
): Promise<number> {
  const rows = await db.any(sql.type(z.object({ workspace_id: z.string() }))`
    update workspace_member m set ai_allowed = ${allowed}::boolean
    where m.account_id = ${accountId}::uuid and (${workspaceId}::uuid is null or m.workspace_id = ${workspaceId}::uuid)
    returning m.workspace_id`);
  return rows.length;
}

const chosenRow = z.object({ written: z.boolean(), erased: z.boolean() });

/** The person's own choice. rule: R12 (the account row is held FOR SHARE)  rule: R16 (only as an active member) */
export async function chooseAi(
  db: Executor,
  member: { readonly workspaceId: WorkspaceId; readonly accountId: AccountId },
  allowed: boolean,
): Promise<'chosen' | 'erased' | 'no-member'> {
  const row = await db.one(sql.type(chosenRow)`
    with fence as materialized (
      select id from account where id = ${member.accountId}::uuid and erasure_requested_at is null for share
    ), chosen as (
      update workspace_member m set ai_allowed = ${allowed}::boolean from fence
      where m.account_id = fence.id and m.workspace_id = ${member.workspaceId}::uuid and m.active and m.visible
      returning m.account_id
    )
    select exists (select from chosen) as written, not exists (select from fence) as erased`);
  if (row.written) return 'chosen';
  return row.erased ? 'erased' : 'no-member';
}
