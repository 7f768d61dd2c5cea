/**
 * Owns: which accounts may do what on the operations listener. A membership with the role `operator`, in any workspace, counts as `operator`.
 * Read with each request, so that a role that is taken back ends at once.
 */
import { z } from 'zod';
import type { AccountId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export type StoredRole = 'viewer' | 'operator' | 'admin';

const roleRow = z.object({ role: z.enum(['viewer', 'operator', 'admin']).nullable() });

/** The greater of what the account was given and what its memberships say; null: it is no operator, or is being erased. */
export async function findOperatorRole(db: Executor, accountId: AccountId): Promise<StoredRole | null> {
  const { role } = await db.one(sql.prepared('ops_operator_role', roleRow)`
    select (array['viewer', 'operator', 'admin'])[max(r.rank)] as role from (
      select array_position(array['viewer', 'operator', 'admin'], o.role) as rank from operator_account o where o.account_id = ${accountId}::uuid
      union all
      select 2 from workspace_member m where m.account_id = ${accountId}::uuid and m.role = 'operator' and m.active and m.visible
    ) r where exists (select from account a where a.id = ${accountId}::uuid and a.erasure_requested_at is null)`);
  return role;
}

const operatorRow = z.object({
  account: z.string(),
  email: z.string().nullable(),
  role: z.enum(['viewer', 'operator', 'admin']),
  source: z.enum(['given', 'membership']),
  granted_by: z.string().nullable(),
});
export type OperatorAccount = z.infer<typeof operatorRow>;

const OPERATORS_MAX = 1_000;

/** Every account that is an operator, and by what. */
export function listOperators(db: Executor): Promise<readonly OperatorAccount[]> {
  return db.any(sql.prepared('ops_operators', operatorRow)`
    select a.account_id as account, coalesce(
      (select i.email from account_identity i where i.account_id = a.account_id and i.email is not null order by i.created_at limit 1),
      (select v.email from account_invitation v where v.account_id = a.account_id)) as email, a.role, a.source, a.granted_by
    from (
      select account_id, role, 'given' as source, granted_by from operator_account
      union all
      select account_id, 'operator', 'membership', null from workspace_member where role = 'operator' and active and visible group by account_id
    ) a order by a.role, email nulls last, a.account_id limit ${OPERATORS_MAX}::int`);
}

const doneRow = z.object({ account_id: z.string() });

/** The role that was given to the account; memberships are not looked at. */
export async function givenRole(db: Executor, accountId: AccountId): Promise<StoredRole | null> {
  const row = await db.maybeOne(
    sql.prepared('ops_given_role', roleRow)`select role from operator_account where account_id = ${accountId}::uuid`,
  );
  return row?.role ?? null;
}

/** `role` null: it is taken back. */
export async function giveRole(db: Executor, accountId: AccountId, { role, by }: { role: StoredRole | null; by: string }): Promise<void> {
  if (role === null) {
    await db.any(
      sql.prepared('ops_take_role', doneRow)`delete from operator_account where account_id = ${accountId}::uuid returning account_id`,
    );
    return;
  }
  await db.any(sql.prepared('ops_give_role', doneRow)`
    insert into operator_account (account_id, role, granted_by) values (${accountId}::uuid, ${role}::text, ${by}::text)
    on conflict (account_id) do update set role = excluded.role, granted_by = excluded.granted_by, granted_at = clock_timestamp()
    returning account_id`);
}
