/**
 * Owns: whose credential a sandbox shows, and whether the run that it names is its conversation's. Looked up on each call: a sandbox that
 * was ended is refused at once, on every server.
 */
import { z } from 'zod';
import type { ConversationId, RunId, SandboxId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

export interface FoundSandbox {
  readonly sandboxId: SandboxId;
  readonly workspaceId: WorkspaceId;
  readonly conversationId: ConversationId;
  /** The named run exists and belongs to another conversation. */
  readonly foreignRun: boolean;
}

const sandboxRow = z.object({ id: z.string(), workspace_id: z.string(), conversation_id: z.string(), foreign_run: z.boolean() });

/** The live sandbox whose credential has this SHA-256; null when there is none. `runId`: the run that the call names, or null. */
export async function findSandbox(db: Executor, credentialHash: Buffer, runId: RunId | null): Promise<FoundSandbox | null> {
  const row = await db.maybeOne(sql.prepared('web_find_sandbox', sandboxRow)`
    select b.id, b.workspace_id, b.conversation_id,
      exists (select 1 from agent_run r where r.id = ${runId}::uuid and r.conversation_id <> b.conversation_id) as foreign_run
    from sandbox b where b.credential_hash = ${sql.binary(credentialHash)} and b.state <> 'ENDED'`);
  return (
    row && {
      sandboxId: row.id as SandboxId,
      workspaceId: row.workspace_id as WorkspaceId,
      conversationId: row.conversation_id as ConversationId,
      foreignRun: row.foreign_run,
    }
  );
}
