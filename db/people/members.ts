/**
 * Owns: workspaces and their members, as the admin API reads and writes them, and as an account sees its own.
 * A member who is removed stays a row, so that its conversations keep their owner; whoever is added again finds them.
 */
import { z } from 'zod';
import type { MemberInput, MemberView, Role, WorkspaceInput, WorkspaceView } from '../../src/contract/people.ts';
import { type AccountId, uuidv7, type WorkspaceId } from '../../src/kernel/ids.ts';
import { type Database, type Executor, sql } from '../pool.ts';
import { lockLinking, nameOfEmail } from './identities.ts';

const roleSchema = z.enum(['member', 'admin', 'operator']);
const doneRow = z.object({});
const idRow = z.object({ id: z.string() });

export async function listWorkspaces(db: Executor): Promise<readonly WorkspaceView[]> {
  return db.any(sql.type(z.object({ slug: z.string(), name: z.string(), members: z.number() }))`
    select w.slug, w.name, (select count(*) from workspace_member m where m.workspace_id = w.id and m.active) as members
    from workspace w order by w.slug`);
}

/** False: the slug is taken. */
export async function addWorkspace(db: Executor, { slug, name }: WorkspaceInput): Promise<boolean> {
  const row = await db.maybeOne(sql.type(idRow)`
    insert into workspace (id, slug, name) values (${uuidv7<'workspace'>()}, ${slug}, ${name}) on conflict (slug) do nothing returning id`);
  return row !== null;
}

export async function findWorkspaceId(db: Executor, slug: string): Promise<WorkspaceId | null> {
  const row = await db.maybeOne(sql.type(idRow)`select id from workspace where slug = ${slug}`);
  return row && (row.id as WorkspaceId);
}

const memberRow = z.object({
  workspace: z.string(),
  account_id: z.string(),
  email: z.string().nullable(),
  name: z.string(),
  role: roleSchema,
  state: z.enum(['active', 'invited', 'removed']),
  ai: z.enum(['on', 'off']),
});

/** Members of a workspace, or of all with null, at most `max`. */
export async function listMembers(db: Executor, workspaceId: WorkspaceId | null, max: number): Promise<readonly MemberView[]> {
  const rows = await db.any(sql.type(memberRow)`
    select w.slug as workspace, m.account_id, m.role, a.display_name as name,
      coalesce(v.email, (select i.email from account_identity i where i.account_id = a.id and i.email is not null order by i.created_at limit 1)) as email,
      case when not (m.active and m.visible) then 'removed' when v.email is not null then 'invited' else 'active' end as state,
      case when m.ai_allowed then 'on' else 'off' end as ai
    from workspace_member m join workspace w on w.id = m.workspace_id join account a on a.id = m.account_id
    left join account_invitation v on v.account_id = a.id
    where ${workspaceId}::uuid is null or w.id = ${workspaceId}::uuid
    order by w.slug, a.display_name, a.id limit ${max}::int`);
  return rows.map(({ account_id, ...row }) => ({ ...row, account: account_id }));
}

/** The account that signed in last with this verified email, or that is invited by it; null when nobody is known by it. */
export async function findAccountByEmail(db: Executor, email: string): Promise<AccountId | null> {
  const row = await db.maybeOne(sql.type(idRow)`
    select account_id as id from account_identity where email = ${email}
    union all select account_id from account_invitation where email = ${email} limit 1`);
  return row && (row.id as AccountId);
}

export interface NewMember extends Required<Pick<MemberInput, 'email' | 'role'>> {
  readonly workspaceId: WorkspaceId;
  /** null: the account keeps the name it has; a new one is called after its email. */
  readonly name: string | null;
  /** IANA name, for a new account. */
  readonly timeZone: string;
}

/** Makes the account with this email a member, with this role. Nobody has the email yet: a new account waits for its first sign-in. */
export function addMember(db: Database, { email, role, workspaceId, name, timeZone }: NewMember): Promise<'invited' | 'added'> {
  return db.transaction(async (tx) => {
    await lockLinking(tx);
    const known = await findAccountByEmail(tx, email);
    const id = known ?? uuidv7<'account'>();
    if (!known) {
      await tx.any(sql.type(doneRow)`
        insert into account (id, display_name, time_zone) values (${id}, ${name ?? nameOfEmail(email)}, ${timeZone}) returning 1`);
      await tx.any(sql.type(doneRow)`insert into account_invitation (email, account_id) values (${email}, ${id}) returning 1`);
    } else if (name !== null) {
      await tx.any(sql.type(doneRow)`update account set display_name = ${name} where id = ${id} returning 1`);
    }
    await tx.any(sql.type(doneRow)`
      insert into workspace_member (workspace_id, account_id, role) values (${workspaceId}, ${id}, ${role})
      on conflict (workspace_id, account_id) do update set role = excluded.role, active = true, visible = true returning 1`);
    return known ? 'added' : 'invited';
  });
}

/** `role: null` removes the member. False: the account is no active member of the workspace. rule: R16 (from the next request or event on) */
export async function changeMember(
  db: Executor,
  m: { readonly workspaceId: WorkspaceId; readonly accountId: AccountId; readonly role: Role | null },
): Promise<boolean> {
  const row = await db.maybeOne(sql.type(idRow)`
    update workspace_member set role = coalesce(${m.role}, role), active = ${m.role}::text is not null
    where workspace_id = ${m.workspaceId} and account_id = ${m.accountId} and active and visible returning account_id as id`);
  return row !== null;
}

const accountRow = z.object({ id: z.string(), display_name: z.string(), time_zone: z.string() });
const ownRow = z.object({ slug: z.string(), name: z.string(), role: roleSchema });

export interface OwnAccount {
  readonly account: { readonly id: string; readonly displayName: string; readonly timeZone: string };
  readonly workspaces: readonly { readonly slug: string; readonly name: string; readonly role: Role }[];
}

/** An account and the workspaces in which it is an active, visible member, the oldest membership first; null: there is no such account. */
export async function readOwnAccount(db: Executor, accountId: AccountId): Promise<OwnAccount | null> {
  const account = await db.maybeOne(sql.prepared('people_own_account', accountRow)`
    select id, display_name, time_zone from account where id = ${accountId}`);
  if (!account) return null;
  const workspaces = await db.any(sql.prepared('people_own_workspaces', ownRow)`
    select w.slug, w.name, m.role from workspace_member m join workspace w on w.id = m.workspace_id
    where m.account_id = ${accountId} and m.active and m.visible order by m.created_at, w.id`);
  return { account: { id: account.id, displayName: account.display_name, timeZone: account.time_zone }, workspaces };
}
