/**
 * Owns: what `GET /session` says about the account and the workspace that it opens in.
 */
import { z } from 'zod';
import type { Session } from '../../src/contract/web.ts';
import type { AccountId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

const sessionRow = z.object({
  account_id: z.string(),
  display_name: z.string(),
  time_zone: z.string(),
  workspace_id: z.string(),
  slug: z.string(),
  name: z.string(),
  role: z.enum(['member', 'admin', 'operator']),
  demo: z.boolean(),
  ai_allowed: z.boolean(),
});

/** The account, its first workspace (or the one with this slug), its role there, whether the built-in model answers there, and the account's choice of AI; null when it is an active, visible member of none. rule: R16 */
export async function readSession(
  db: Executor,
  accountId: AccountId,
  slug: string | null,
): Promise<Pick<Session, 'account' | 'workspace' | 'role' | 'demoModel' | 'aiAllowed'> | null> {
  const row = await db.maybeOne(sql.prepared('web_read_session', sessionRow)`
    select a.id as account_id, a.display_name, a.time_zone, w.id as workspace_id, w.slug, w.name, m.role, m.ai_allowed,
      coalesce(turn_admission(w.id, a.id)->>'model' = 'demo', false) as demo
    from account a join workspace_member m on m.account_id = a.id join workspace w on w.id = m.workspace_id
    where a.id = ${accountId} and (${slug}::text is null or w.slug = ${slug}::text) and m.active and m.visible
    order by m.created_at, w.id limit 1`);
  return (
    row && {
      account: { id: row.account_id, displayName: row.display_name, timeZone: row.time_zone },
      workspace: { id: row.workspace_id, slug: row.slug, name: row.name },
      role: row.role,
      demoModel: row.demo,
      aiAllowed: row.ai_allowed,
    }
  );
}
