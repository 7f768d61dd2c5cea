/**
 * Owns: the rows of `HEPH_AUTH=local`: one workspace, one account. Servers that start together make them once.
 */
import { z } from 'zod';
import type { AccountId, WorkspaceId } from '../../src/kernel/ids.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { type Database, sql } from '../pool.ts';
import type { MemberKey } from './membership.ts';

export const LOCAL_WORKSPACE_SLUG = 'home';
/** Fixed, because an account has no name of its own by which a second start could find it. */
export const LOCAL_ACCOUNT_ID = '00000000-0000-7000-8000-000000000001' as AccountId;

const doneRow = z.object({ id: z.string() });

/**
 * The one member of local mode; its rows are made when they are missing and never changed here (a person may have changed them since).
 * `timeZone` is an IANA name. rule: R16 (a member who was removed stays removed)
 */
export function localMember(db: Database, person: { readonly displayName: string; readonly timeZone: string }): Promise<MemberKey> {
  return db.transaction(async (tx) => {
    await tx.any(sql.type(doneRow)`
      insert into workspace (id, slug, name) values (${uuidv7<'workspace'>()}, ${LOCAL_WORKSPACE_SLUG}, 'Home')
      on conflict (slug) do nothing returning id`);
    await tx.any(sql.type(doneRow)`
      insert into account (id, display_name, time_zone) values (${LOCAL_ACCOUNT_ID}, ${person.displayName}, ${person.timeZone})
      on conflict (id) do nothing returning id`);
    const { id } = await tx.one(sql.type(doneRow)`select id from workspace where slug = ${LOCAL_WORKSPACE_SLUG}`);
    await tx.any(sql.type(doneRow)`
      insert into workspace_member (workspace_id, account_id, role) values (${id}, ${LOCAL_ACCOUNT_ID}, 'operator')
      on conflict (workspace_id, account_id) do nothing returning account_id as id`);
    return { workspaceId: id as WorkspaceId, accountId: LOCAL_ACCOUNT_ID };
  });
}
