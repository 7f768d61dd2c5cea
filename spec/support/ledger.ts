/**
 * Rows for specs: people, conversations, hosts, sandboxes, and the ledger's own statements with short parameters.
 */
import { createHash } from 'node:crypto';
import { failureTexts } from '../../actors/index.ts';
import { type Claimed, claimTurns, type Grant, type Offer } from '../../db/ledger/claim.ts';
import { findOrCreateMain, loadConversation } from '../../db/ledger/conversation.ts';
import { insertSandbox, registerHost } from '../../db/ledger/sandboxes.ts';
import { type SlackOrigin, type SubmitResult, submitQuestion } from '../../db/ledger/submit.ts';
import { type Database, sql } from '../../db/pool.ts';
import {
  type AccountId,
  type ConversationId,
  type HostId,
  newSecret,
  type SandboxId,
  uuidv7,
  type WorkspaceId,
} from '../../src/kernel/ids.ts';
import { bindModel } from './models.ts';

export const TIMES = { leaseTtlMs: 60_000, graceMs: 30_000, refusals: failureTexts('Heph').refusals };

export interface Person {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
}

let names = 0;

/** A workspace with one member, or another member of a given workspace. */
export async function makePerson(db: Database, workspace?: WorkspaceId): Promise<Person> {
  const workspaceId = workspace ?? uuidv7<'workspace'>();
  const accountId = uuidv7<'account'>();
  if (!workspace)
    await run(
      db,
      sql.unsafe`insert into workspace (id, slug, name) values (${workspaceId}, ${`w${++names}-${workspaceId.slice(0, 13)}`}, 'W') returning 1`,
    );
  await run(db, sql.unsafe`insert into account (id, display_name) values (${accountId}, 'Ada') returning 1`);
  await run(db, sql.unsafe`insert into workspace_member (workspace_id, account_id) values (${workspaceId}, ${accountId}) returning 1`);
  return { workspaceId, accountId };
}

type Unsafe = ReturnType<typeof sql.unsafe>;
export async function run(db: Database, query: Unsafe): Promise<readonly Record<string, unknown>[]> {
  return (await db.any(query as never)) as readonly Record<string, unknown>[];
}

export function makeMain(db: Database, person: Person): Promise<ConversationId> {
  return findOrCreateMain(db, person.workspaceId, person.accountId);
}

export async function makeHost(db: Database, name = 'spec'): Promise<HostId> {
  const id = uuidv7<'host'>();
  await registerHost(db, { id, name, lockKey: Math.floor(Math.random() * Number.MAX_SAFE_INTEGER), sandboxesMax: 4 });
  return id;
}

export async function makeSandbox(
  db: Database,
  person: Person,
  conversationId: ConversationId,
  hostId: HostId,
): Promise<{ id: SandboxId; credential: string }> {
  const id = uuidv7<'sandbox'>();
  const credential = newSecret();
  const credentialHash = createHash('sha256').update(credential).digest();
  await insertSandbox(db, { id, conversationId, workspaceId: person.workspaceId, hostId, credentialHash });
  return { id, credential };
}

export interface AskOptions {
  readonly requestId?: string;
  readonly text?: string;
  readonly sandboxId?: SandboxId | null;
  readonly maxFollowUps?: number;
  /** Asked in Slack. */
  readonly slack?: SlackOrigin;
}

/** Submits one question at the conversation's present version. */
export async function ask(db: Database, person: Person, conversationId: ConversationId, options: AskOptions = {}) {
  const rows = await loadConversation(db, conversationId);
  if (!rows) throw new Error('no conversation');
  const ids = { turnId: uuidv7<'turn'>(), entryId: uuidv7<'entry'>(), runId: uuidv7<'run'>() };
  const { requestId = `r-${ids.turnId}`, text = 'Why?', sandboxId = null, maxFollowUps = 10 } = options;
  const result: SubmitResult = await submitQuestion(db, {
    ...person,
    ...ids,
    conversationId,
    version: rows.version,
    requestId,
    surface: options.slack ? 'slack' : 'app',
    text,
    page: null,
    slack: options.slack ?? null,
    maxFollowUps,
    sandboxId,
    times: TIMES,
  });
  return { ...ids, requestId, result };
}

/** Claims as the server whose host the first sandbox belongs to. */
export async function claimFor(db: Database, offers: readonly Offer[], rules = TIMES): Promise<Claimed> {
  const [row] = await run(db, sql.unsafe`select host_id from sandbox where id = ${offers[0]?.sandboxId ?? null}::uuid`);
  return claimTurns(db, { hostId: (row?.['host_id'] as HostId | undefined) ?? uuidv7<'host'>(), offers }, rules);
}

/** Claims for one sandbox; undefined when nothing was granted. */
export async function claimOne(
  db: Database,
  conversationId: ConversationId,
  sandboxId: SandboxId,
  times = TIMES,
): Promise<Grant | undefined> {
  const { grants } = await claimFor(db, [{ conversationId, sandboxId }], times);
  return grants[0];
}

/** Empties all tables, so that a test counts only its own slots and turns. */
export async function emptyLedger(db: Database): Promise<void> {
  await run(db, sql.unsafe`truncate workspace, account, sandbox_host, turn_slot, llm_usage_event, waiting_pull cascade`);
  await bindModel(db);
}
