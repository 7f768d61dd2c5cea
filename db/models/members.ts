/**
 * Owns: whether a member lets an AI model work for them (workspace_member.ai_allowed). Admission reads the same column (the function
 * turn_admission): what is written here counts from the next turn that starts, also for one that waits.
 */
import { z } from 'zod';
import type { MemberView } from '../../src/contract/admin.ts';
import type { AccountId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

const memberRow = z.object({
  account: z.string(),
  name: z.string(),
  workspace: z.string(),
  role: z.string(),
  active: z.boolean(),
  ai_allowed: z.boolean(),
});

/** Members of one workspace, or of all of them. */
export async function listMembers(db: Executor, workspaceId: string | null): Promise<readonly MemberView[]> {
  const rows = await db.any(sql.prepared('models_list_members', memberRow)`
    select a.id as account, a.display_name as name, w.slug as workspace, m.role, m.active, m.ai_allowed
    from workspace_member m join account a on a.id = m.account_id join workspace w on w.id = m.workspace_id
    where ${workspaceId}::uuid is null or m.workspace_id = ${workspaceId}::uuid
    order by w.slug, a.display_name, a.id`);
  return rows.map(({ ai_allowed: aiAllowed, ...row }) => ({ ...row, aiAllowed }));
}

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
