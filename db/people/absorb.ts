/**
 * Owns: giving everything of an unclaimed account to the account of its person (seed, "Owner and tenancy"). Runs inside the transaction that
 * links a subject, under the linking lock.
 * - Both accounts are locked for update first: whoever writes for one of them (FOR SHARE) waits, or has committed. rule: R12
 * - A running attempt goes back to the queue before its turn moves; its sandbox has lost the run (rule R5). The last attempt is given back: the
 *   person did this, no sandbox failed (rule R9).
 * - Where both have a main conversation, the entries of the absorbed one follow those of the other, in their own order (rule R3), and keep
 *   their ids, so that whatever names them still finds them. Where one has none, its conversation changes its owner.
 */
import { z } from 'zod';
import type { AccountId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

/** One conversation that has other rows now, to be told when the transaction has committed. */
export interface AbsorbedConversation {
  readonly workspaceId: string;
  readonly conversationId: string;
  readonly version: number;
  readonly turnIds: readonly string[];
  readonly entryIds: readonly string[];
  /** Attempts that lost their run. */
  readonly runIds: readonly string[];
}

export interface Accounts {
  /** Nobody has signed in to it. */
  readonly absorbed: AccountId;
  readonly claiming: AccountId;
}

const doneRow = z.object({});
const idRow = z.object({ id: z.string() });
const requeuedRow = z.object({ id: z.string(), conversation_id: z.string() });
const mergeRow = z.object({
  workspace_id: z.string(),
  old_id: z.string(),
  main_id: z.string().nullable(),
  last_seq: z.number().nullable(),
});
type Merge = z.infer<typeof mergeRow>;

/** null: one of the two is being erased, and nothing was changed. */
export async function absorbAccount(tx: Executor, accounts: Accounts): Promise<readonly AbsorbedConversation[] | null> {
  const { absorbed, claiming } = accounts;
  const present = await tx.any(sql.type(idRow)`
    select id from account where id in (${absorbed}, ${claiming}) and erasure_requested_at is null order by id for update`);
  if (present.length < 2) return null;
  await tx.any(sql.type(idRow)`
    select id from mentor_conversation where account_id in (${absorbed}, ${claiming}) order by id for update`);
  const requeued = await requeueAttempts(tx, absorbed);
  const merges = await tx.any(sql.type(mergeRow)`
    select o.workspace_id, o.id as old_id, m.id as main_id, m.last_seq
    from mentor_conversation o
    left join mentor_conversation m on m.workspace_id = o.workspace_id and m.account_id = ${claiming} and m.parent_conversation_id is null
    where o.account_id = ${absorbed} and o.parent_conversation_id is null order by o.id`);
  const changed: AbsorbedConversation[] = [];
  for (const merge of merges) {
    const runIds = requeued.filter(({ conversation_id }) => conversation_id === merge.old_id).map(({ id }) => id);
    changed.push(
      await (merge.main_id === null ? moveOwner(tx, merge, accounts) : mergeInto(tx, merge, accounts)).then((one) => ({ ...one, runIds })),
    );
  }
  await moveMemberships(tx, accounts);
  return changed;
}

/** Ends its sandboxes, too: their credentials are those of conversations that somebody else owns now. */
async function requeueAttempts(tx: Executor, accountId: AccountId): Promise<readonly z.infer<typeof requeuedRow>[]> {
  await tx.any(sql.type(doneRow)`
    update sandbox b set state = 'ENDED', ended_at = clock_timestamp() from mentor_conversation c
    where b.conversation_id = c.id and c.account_id = ${accountId} and b.state <> 'ENDED' returning 1`);
  return tx.any(sql.type(requeuedRow)`
    with held as materialized (
      select r.id, r.turn_id from agent_run r join mentor_conversation c on c.id = r.conversation_id
      where c.account_id = ${accountId} and r.state = 'LEASED' for no key update of r
    ), turn as (
      update mentor_turn t set status = 'QUEUED', attempt = least(t.attempt, 1) from held
      where t.id = held.turn_id and t.status = 'RUNNING' returning t.id
    ), freed as (
      update turn_slot s set run_id = null from held where s.run_id = held.id
    )
    update agent_run r set
      state = case when turn.id is null then 'ENDED' else 'WAITING' end, ended_at = case when turn.id is null then clock_timestamp() end,
      sandbox_id = null, lease_until = null, deadline_at = null, bound_at = null, called_at = null
    from held left join turn on turn.id = held.turn_id
    where r.id = held.id returning r.id, r.conversation_id`);
}

type Moved = Omit<AbsorbedConversation, 'runIds'>;
const changedRow = z.object({ version: z.number() });

/** The person has no conversation in this workspace yet: the one of the absorbed account is theirs, with its threads. */
async function moveOwner(
  tx: Executor,
  { workspace_id: workspaceId, old_id: conversationId }: Merge,
  { absorbed, claiming }: Accounts,
): Promise<Moved> {
  const turns = await tx.any(sql.type(idRow)`
    update mentor_turn set account_id = ${claiming} where account_id = ${absorbed} and workspace_id = ${workspaceId} returning id`);
  await tx.any(sql.type(doneRow)`
    update mentor_conversation set account_id = ${claiming}, version = version + 1
    where account_id = ${absorbed} and workspace_id = ${workspaceId} returning 1`);
  const { version } = await tx.one(sql.type(changedRow)`select version from mentor_conversation where id = ${conversationId}`);
  return { workspaceId, conversationId, version, turnIds: turns.map(({ id }) => id), entryIds: [] };
}

async function mergeInto(tx: Executor, merge: Merge, { absorbed, claiming }: Accounts): Promise<Moved> {
  const { workspace_id: workspaceId, old_id: oldId, main_id: mainId, last_seq: lastSeq } = merge;
  // Summaries speak of numbers that are no more: the next turn summarizes the whole again.
  await tx.any(sql.type(doneRow)`
    update mentor_entry set text = null, search_text = null, payload = null, erased_at = clock_timestamp()
    where conversation_id = ${oldId} and kind = 'SUMMARY' and erased_at is null returning 1`);
  const entries = await tx.any(sql.type(idRow)`
    with ranked as materialized (
      select id, row_number() over (order by seq) as place from mentor_entry where conversation_id = ${oldId}
    )
    update mentor_entry e set conversation_id = ${mainId}, seq = ${lastSeq}::bigint + r.place from ranked r where e.id = r.id returning e.id`);
  const turns = await moveTurns(tx, merge, { absorbed, claiming });
  await tx.any(sql.type(doneRow)`update sandbox set conversation_id = ${mainId} where conversation_id = ${oldId} returning 1`);
  await tx.any(sql.type(doneRow)`
    update mentor_conversation set account_id = ${claiming}, parent_conversation_id = ${mainId}, version = version + 1
    where parent_conversation_id = ${oldId} returning 1`);
  const { version } = await tx.one(sql.type(changedRow)`
    with old as (
      delete from mentor_conversation where id = ${oldId} returning last_answer_at, slack_team_id, slack_user_id, slack_channel_id
    )
    update mentor_conversation m set version = m.version + 1, last_seq = m.last_seq + ${entries.length}::int,
      last_answer_at = greatest(m.last_answer_at, old.last_answer_at),
      slack_team_id = case when m.slack_team_id is null then old.slack_team_id else m.slack_team_id end,
      slack_user_id = case when m.slack_team_id is null then old.slack_user_id else m.slack_user_id end,
      slack_channel_id = case when m.slack_team_id is null then old.slack_channel_id else m.slack_channel_id end
    from old where m.id = ${mainId} returning m.version`);
  return { workspaceId, conversationId: mainId as string, version, turnIds: turns, entryIds: entries.map(({ id }) => id) };
}

/** A requestId that both accounts have used makes way for the id of its turn: its client has had its answer, or asks for that one. */
async function moveTurns(
  tx: Executor,
  { workspace_id: workspaceId, old_id: oldId, main_id: mainId }: Merge,
  { absorbed, claiming }: Accounts,
): Promise<string[]> {
  await tx.any(sql.type(doneRow)`
    update agent_run set conversation_id = ${mainId} where conversation_id = ${oldId} returning 1`);
  // The path of the merged conversation is another one: nobody compares it with what either was before (rule R13).
  await tx.any(sql.type(doneRow)`delete from mentor_path where conversation_id in (${oldId}, ${mainId}) returning 1`);
  const rows = await tx.any(sql.type(idRow)`
    update mentor_turn t set account_id = ${claiming},
      conversation_id = case when t.conversation_id = ${oldId} then ${mainId}::uuid else t.conversation_id end,
      question_seq = e.seq,
      request_id = case when exists (
          select from mentor_turn o
          where o.request_id = t.request_id and o.account_id = ${claiming} and o.workspace_id = t.workspace_id and o.surface = t.surface)
        then t.id::text else t.request_id end
    from mentor_entry e
    where t.account_id = ${absorbed} and t.workspace_id = ${workspaceId} and e.id = t.question_entry_id returning t.id`);
  return rows.map(({ id }) => id);
}

/** The better role counts, also that of an operator; a new invitation brings a removed member back. */
async function moveMemberships(tx: Executor, { absorbed, claiming }: Accounts): Promise<void> {
  await tx.any(sql.type(doneRow)`
    insert into workspace_member as m (workspace_id, account_id, role, active, visible, ai_allowed)
    select workspace_id, ${claiming}, role, active, visible, ai_allowed from workspace_member where account_id = ${absorbed}
    on conflict (workspace_id, account_id) do update set active = m.active or excluded.active, visible = m.visible or excluded.visible,
      role = case when 'operator' in (m.role, excluded.role) then 'operator' when 'admin' in (m.role, excluded.role) then 'admin' else 'member' end
    returning 1`);
  await tx.any(sql.type(doneRow)`delete from workspace_member where account_id = ${absorbed} returning 1`);
  await tx.any(sql.type(doneRow)`
    with gone as (delete from operator_account where account_id = ${absorbed} returning role, granted_by)
    insert into operator_account as o (account_id, role, granted_by) select ${claiming}, role, granted_by from gone
    on conflict (account_id) do update set granted_by = excluded.granted_by, granted_at = clock_timestamp(),
      role = case when 'admin' in (o.role, excluded.role) then 'admin' when 'operator' in (o.role, excluded.role) then 'operator' else 'viewer' end
    returning 1`);
}
