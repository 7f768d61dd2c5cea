/**
 * Owns: an attempt in the ledger, for specs of the gateway: a running turn whose run is leased to a sandbox, and what can happen to it.
 * The rows are written as the ledger's statements leave them, so the triggers agree at each commit.
 */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Attempt } from '../../actors/index.ts';
import { type Database, type Executor, sql } from '../../db/pool.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';

export interface SeededAttempt extends Attempt {
  readonly turnId: string;
}

const nothing = z.object({});
let seeded = 0;

/** Writes a running turn in a conversation of its own, admitted now, on its first attempt, with a deadline far away. */
export async function seedAttempt(db: Database): Promise<SeededAttempt> {
  const nth = ++seeded;
  const workspaceId = uuidv7<'workspace'>();
  const [accountId, entryId, turnId, hostId] = [uuidv7(), uuidv7(), uuidv7(), uuidv7()];
  const sandbox = { sandboxId: uuidv7<'sandbox'>(), workspaceId, conversationId: uuidv7<'conversation'>() };
  const runId = uuidv7<'run'>();
  const { sandboxId, conversationId } = sandbox;
  await db.transaction(async (tx) => {
    const run = (query: Parameters<typeof tx.any>[0]) => tx.any(query);
    await run(sql.type(nothing)`insert into workspace (id, slug, name) values (${workspaceId}, ${`w${nth}`}, 'W')`);
    await run(sql.type(nothing)`insert into account (id, display_name) values (${accountId}, 'Ada')`);
    await run(sql.type(nothing)`insert into workspace_member (workspace_id, account_id) values (${workspaceId}, ${accountId})`);
    await run(
      sql.type(
        nothing,
      )`insert into mentor_conversation (id, workspace_id, account_id) values (${conversationId}, ${workspaceId}, ${accountId})`,
    );
    await run(sql.type(nothing)`insert into mentor_entry (id, workspace_id, conversation_id, seq, kind, surface, text)
      values (${entryId}, ${workspaceId}, ${conversationId}, 1, 'QUESTION', 'app', 'why?')`);
    await run(sql.type(nothing)`insert into sandbox_host (id, name, lock_key, sandboxes_max) values (${hostId}, ${`h${nth}`}, ${nth}, 1)`);
    await run(sql.type(nothing)`insert into sandbox (id, workspace_id, conversation_id, host_id, credential_hash, state)
      values (${sandboxId}, ${workspaceId}, ${conversationId}, ${hostId}, ${sql.binary(randomBytes(32))}, 'READY')`);
    await run(sql.type(nothing)`insert into mentor_turn
      (id, workspace_id, conversation_id, account_id, question_entry_id, question_seq, request_id, surface, status, attempt, started_at,
        admission)
      values (${turnId}, ${workspaceId}, ${conversationId}, ${accountId}, ${entryId}, 1, 'r', 'app', 'RUNNING', 1, clock_timestamp(),
        turn_admission(${workspaceId}, ${accountId}))`);
    await run(sql.type(nothing)`insert into agent_run
      (id, workspace_id, kind, conversation_id, turn_id, state, epoch, sandbox_id, lease_until, deadline_at, bound_at)
      values (${runId}, ${workspaceId}, 'TURN', ${conversationId}, ${turnId}, 'LEASED', 1, ${sandboxId},
        clock_timestamp() + interval '60 s', clock_timestamp() + interval '5 min', clock_timestamp() + interval '330 s')`);
    await run(sql.type(nothing)`insert into turn_slot (slot_no, run_id) values (${nth}, ${runId})`);
  });
  return { sandbox, runId, epoch: 1, turnId };
}

/** Its person stops it: the run stays leased for the grace. */
export async function stopAttempt(db: Executor, attempt: SeededAttempt): Promise<void> {
  await db.any(sql.type(nothing)`update mentor_turn set status = 'STOPPED', ended_at = clock_timestamp() where id = ${attempt.turnId}`);
}

/** Its time is over. */
export async function passDeadline(db: Executor, attempt: SeededAttempt): Promise<void> {
  await db.any(sql.type(nothing)`update agent_run set deadline_at = clock_timestamp() where id = ${attempt.runId}`);
}

/** The reaper took it back and the same sandbox claimed the run again. Returns the second attempt. */
export async function nextAttempt(db: Database, attempt: SeededAttempt): Promise<SeededAttempt> {
  await db.transaction(async (tx) => {
    await tx.any(sql.type(nothing)`update mentor_turn set attempt = attempt + 1 where id = ${attempt.turnId}`);
    await tx.any(sql.type(nothing)`update agent_run set epoch = epoch + 1 where id = ${attempt.runId}`);
  });
  return { ...attempt, epoch: attempt.epoch + 1 };
}

const usageRow = z.object({
  id: z.string(),
  state: z.string(),
  outcome: z.string().nullable(),
  http_status: z.number().nullable(),
  attempt: z.number(),
  epoch: z.number(),
  run_id: z.string(),
  api: z.string(),
  model: z.string(),
  input_tokens: z.number().nullable(),
  output_tokens: z.number().nullable(),
  cache_read_tokens: z.number().nullable(),
  cache_write_tokens: z.number().nullable(),
  price_kind: z.string().nullable(),
  /** A decimal, so that nothing is rounded. */
  cost: z.string().nullable(),
});
export type UsageRow = z.infer<typeof usageRow>;

/** The turn's usage rows, oldest first. */
export async function usageRows(db: Executor, attempt: SeededAttempt): Promise<readonly UsageRow[]> {
  return db.any(sql.type(usageRow)`select id, state, outcome, http_status, attempt, epoch, run_id, api, model,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    price_kind, cost::text as cost from llm_usage_event where turn_id = ${attempt.turnId} order by id`);
}
