/**
 * Owns: which account a user of a team is, where their messages are, and what they are told without a turn.
 */
import { z } from 'zod';
import type { AccountId, EntryId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';
import type { MemberKey } from '../web/membership.ts';

const accountRow = z.object({ account_id: z.string(), active: z.boolean(), ai_allowed: z.boolean() });

/** `active`: a member of the team's workspace who may be shown something. `aiAllowed`: turns may be started for them. */
export interface SlackPerson {
  readonly accountId: AccountId;
  readonly active: boolean;
  readonly aiAllowed: boolean;
}

/** null: nobody has said who this user is. */
export async function findSlackPerson(
  db: Executor,
  { teamId, userId, workspaceId }: { readonly teamId: string; readonly userId: string; readonly workspaceId: WorkspaceId },
): Promise<SlackPerson | null> {
  const row = await db.maybeOne(sql.prepared('slack_find_person', accountRow)`
    select i.account_id, coalesce(m.active and m.visible, false) as active, coalesce(m.ai_allowed, false) as ai_allowed
    from slack_identity i left join workspace_member m on m.account_id = i.account_id and m.workspace_id = ${workspaceId}
    where i.team_id = ${teamId} and i.user_id = ${userId}`);
  return row && { accountId: row.account_id as AccountId, active: row.active, aiAllowed: row.ai_allowed };
}

const messageRow = z.object({ workspace_id: z.string(), account_id: z.string(), entry_id: z.string() });

/** The question that a message became, and whose it is. */
export async function findMessage(
  db: Executor,
  { teamId, channelId, messageTs }: { readonly teamId: string; readonly channelId: string; readonly messageTs: string },
): Promise<{ readonly owner: MemberKey; readonly entryId: EntryId } | null> {
  const row = await db.maybeOne(sql.prepared('slack_find_message', messageRow)`
    select s.workspace_id, c.account_id, t.question_entry_id as entry_id
    from slack_turn s join mentor_turn t on t.id = s.turn_id join mentor_conversation c on c.id = t.conversation_id
    where s.team_id = ${teamId} and s.channel_id = ${channelId} and s.message_ts = ${messageTs}`);
  if (!row) return null;
  const owner = { workspaceId: row.workspace_id as WorkspaceId, accountId: row.account_id as AccountId };
  return { owner, entryId: row.entry_id as EntryId };
}

const doneRow = z.object({ id: z.string() });

/** Says fixed words in a thread, once for an event, or for what its caller names instead of one. rule: R14 */
export async function enqueueNotice(
  db: Executor,
  notice: {
    id: string;
    eventId: string;
    workspaceId: WorkspaceId;
    teamId: string;
    channelId: string;
    /** null: a message of its own. */
    threadTs: string | null;
    userId: string;
    notice: string;
  },
): Promise<void> {
  await db.any(sql.prepared('slack_enqueue_notice', doneRow)`
    insert into outbox_action (id, kind, workspace_id, team_id, channel_id, thread_ts, notice, user_id, event_id, due_at)
    values (${notice.id}, 'SLACK_NOTICE', ${notice.workspaceId}, ${notice.teamId}, ${notice.channelId}, ${notice.threadTs}, ${notice.notice},
      ${notice.userId}, ${notice.eventId}, clock_timestamp())
    on conflict on constraint ux_outbox_action_event do nothing returning id`);
}

const linkRow = z.object({ team_id: z.string(), user_id: z.string(), usable: z.boolean() });

/** Whom a link is for: it is the notice that offered it. It serves once, for a while. null: there is no such link. */
export async function findLink(
  db: Executor,
  actionId: string,
  validMs: number,
): Promise<{ readonly teamId: string; readonly userId: string; readonly usable: boolean } | null> {
  const row = await db.maybeOne(sql.prepared('slack_find_link', linkRow)`
    select a.team_id, a.user_id, a.created_at > clock_timestamp() - ${validMs}::int * interval '1 ms'
      and not exists (select from slack_identity i where i.team_id = a.team_id and i.user_id = a.user_id and i.created_at >= a.created_at)
      and exists (select from slack_connection k where k.team_id = a.team_id and k.state = 'ACTIVE') as usable
    from outbox_action a where a.id = ${actionId}::uuid and a.notice in ('LINK', 'WELCOME')`);
  return row && { teamId: row.team_id, userId: row.user_id, usable: row.usable };
}

/** Links the user to the account. False: the link was used, or is too old. Two that race: one wins. */
export async function redeemLink(
  tx: Executor,
  { actionId, accountId, validMs }: { readonly actionId: string; readonly accountId: AccountId; readonly validMs: number },
): Promise<boolean> {
  await tx.any(sql.type(doneRow)`select id from outbox_action where id = ${actionId}::uuid for update`);
  const link = await findLink(tx, actionId, validMs);
  if (!link?.usable) return false;
  const row = await tx.maybeOne(sql.type(z.object({ user_id: z.string() }))`
    insert into slack_identity (team_id, user_id, account_id) values (${link.teamId}, ${link.userId}, ${accountId})
    on conflict on constraint slack_identity_pk do update set account_id = excluded.account_id, created_at = clock_timestamp()
    returning user_id`);
  return row !== null;
}
