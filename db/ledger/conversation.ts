/**
 * Owns: finding and creating conversations, and the one bounded statement that rebuilds an actor's state.
 */
import { z } from 'zod';
import type { AccountId, ConversationId, EntryId, RunId, SandboxId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

const idRow = z.object({ id: z.string() });

/**
 * The account's main conversation in a workspace; made by its first write. Two first writes meet on `ux_mentor_conversation_main`:
 * the later insert waits for the earlier one, does nothing, and the second statement reads the winner's row.
 */
export async function findOrCreateMain(db: Executor, workspaceId: WorkspaceId, accountId: AccountId): Promise<ConversationId> {
  const found = await findMain(db, workspaceId, accountId);
  if (found) return found;
  await db.any(sql.type(idRow)`
    insert into mentor_conversation (id, workspace_id, account_id)
    values (${uuidv7<'conversation'>()}, ${workspaceId}, ${accountId})
    on conflict (workspace_id, account_id) where parent_conversation_id is null do nothing
    returning id`);
  const main = await findMain(db, workspaceId, accountId);
  if (!main) throw new Error('the main conversation vanished');
  return main;
}

/** The account's main conversation, or null before its first question. */
export async function findMain(db: Executor, workspaceId: WorkspaceId, accountId: AccountId): Promise<ConversationId | null> {
  const row = await db.maybeOne(sql.prepared('ledger_find_main', idRow)`
    select id from mentor_conversation
    where workspace_id = ${workspaceId} and account_id = ${accountId} and parent_conversation_id is null`);
  return (row?.id as ConversationId | undefined) ?? null;
}

const ownerRow = z.object({ workspace_id: z.string(), account_id: z.string() });

/** True when the conversation is the account's own in this workspace. */
export async function ownsConversation(
  db: Executor,
  member: { readonly workspaceId: WorkspaceId; readonly accountId: AccountId },
  id: ConversationId,
): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('ledger_owns_conversation', ownerRow)`
    select workspace_id, account_id from mentor_conversation where id = ${id}`);
  return row?.workspace_id === member.workspaceId && row.account_id === member.accountId;
}

const leasedSchema = z.object({
  turnId: z.string(),
  status: z.enum(['RUNNING', 'STOPPED']),
  runId: z.string(),
  epoch: z.number(),
  sandboxId: z.string(),
  called: z.boolean(),
});
const queuedSchema = z.object({ turnId: z.string(), requestId: z.string(), attempt: z.number() });
const stateRow = z.object({
  workspace_id: z.string(),
  account_id: z.string(),
  version: z.number(),
  leased: leasedSchema.nullable(),
  queued: z.array(queuedSchema),
});

/** The turn whose run is leased: running, or stopped and not yet ended by its loop. */
export interface LeasedTurn {
  readonly turnId: TurnId;
  readonly status: 'RUNNING' | 'STOPPED';
  readonly runId: RunId;
  readonly epoch: number;
  readonly sandboxId: SandboxId;
  /** The attempt has made a call since its claim. */
  readonly called: boolean;
}

export interface QueuedTurn {
  readonly turnId: TurnId;
  readonly requestId: string;
  readonly attempt: number;
}

/** Everything that an actor needs to decide; true at `version`. */
export interface ConversationRows {
  readonly id: ConversationId;
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  readonly version: number;
  readonly leased: LeasedTurn | null;
  readonly queued: readonly QueuedTurn[];
}

/** More queued turns than any configuration allows; a bound for the read, not the rule. */
const QUEUED_READ_MAX = 1_000;

/**
 * One bounded read, independent of the conversation's length: the conversation by its key, the leased run and the queue by partial indexes.
 * null when there is no such conversation.
 */
export async function loadConversation(db: Executor, id: ConversationId): Promise<ConversationRows | null> {
  const row = await db.maybeOne(sql.prepared('ledger_load_conversation', stateRow)`
    select c.workspace_id, c.account_id, c.version,
      (select json_build_object('turnId', t.id, 'status', t.status, 'runId', r.id, 'epoch', r.epoch, 'sandboxId', r.sandbox_id,
          'called', r.called_at is not null)
        from agent_run r join mentor_turn t on t.id = r.turn_id
        where r.conversation_id = c.id and r.state = 'LEASED') as leased,
      coalesce((select json_agg(json_build_object('turnId', q.id, 'requestId', q.request_id, 'attempt', q.attempt) order by q.question_seq)
        from (select t.id, t.request_id, t.attempt, t.question_seq from mentor_turn t
          where t.conversation_id = c.id and t.status = 'QUEUED' order by t.question_seq limit ${QUEUED_READ_MAX}) q), '[]') as queued
    from mentor_conversation c where c.id = ${id}`);
  if (!row) return null;
  return {
    id,
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    version: row.version,
    leased: row.leased as LeasedTurn | null,
    queued: row.queued as QueuedTurn[],
  };
}

const turnOwnerRow = z.object({ conversation_id: z.string(), question_entry_id: z.string(), status: z.string() });

/** Where a turn belongs, if it is the account's own; null otherwise (another account's turn is not revealed). */
export async function findTurn(
  db: Executor,
  member: { readonly workspaceId: WorkspaceId; readonly accountId: AccountId },
  turnId: TurnId,
): Promise<{ conversationId: ConversationId; questionEntryId: EntryId; status: string } | null> {
  const row = await db.maybeOne(sql.prepared('ledger_find_turn', turnOwnerRow)`
    select t.conversation_id, t.question_entry_id, t.status from mentor_turn t
    where t.id = ${turnId} and t.workspace_id = ${member.workspaceId} and t.account_id = ${member.accountId}`);
  if (!row) return null;
  return {
    conversationId: row.conversation_id as ConversationId,
    questionEntryId: row.question_entry_id as EntryId,
    status: row.status,
  };
}
