/**
 * Owns: who may see a workspace now. rule: R16 (asked before each request, snapshot, event and ping; nothing here is cached)
 */
import { z } from 'zod';
import type { AccountId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

/** An account in a workspace. */
export interface MemberKey {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
}

const memberRow = z.object({ workspace_id: z.string(), account_id: z.string() });

export function toMember(row: z.infer<typeof memberRow>): MemberKey {
  return { workspaceId: row.workspace_id as WorkspaceId, accountId: row.account_id as AccountId };
}

/** Of `members`, those that are active and visible now. One statement for all of them. */
export async function activeMembers(db: Executor, members: readonly MemberKey[]): Promise<readonly MemberKey[]> {
  if (members.length === 0) return [];
  const workspaces = members.map((member) => member.workspaceId);
  const accounts = members.map((member) => member.accountId);
  const rows = await db.any(sql.prepared('web_active_members', memberRow)`
    select m.workspace_id, m.account_id
    from unnest(${sql.array(workspaces, 'uuid')}, ${sql.array(accounts, 'uuid')}) as asked(workspace_id, account_id)
    join workspace_member m using (workspace_id, account_id)
    where m.active and m.visible`);
  return rows.map(toMember);
}

/** The account's membership of the workspace with this slug; null when there is none that is active and visible. */
export async function findMembership(db: Executor, slug: string, accountId: AccountId): Promise<MemberKey | null> {
  const row = await db.maybeOne(sql.prepared('web_find_membership', memberRow)`
    select m.workspace_id, m.account_id
    from workspace w join workspace_member m on m.workspace_id = w.id
    where w.slug = ${slug} and m.account_id = ${accountId} and m.active and m.visible`);
  return row && toMember(row);
}
