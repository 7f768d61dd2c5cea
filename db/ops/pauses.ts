/**
 * Owns: the pauses of claims. The view `claimable_turn` and the submit's folded claim respect them: a claim that begins after the commit of a
 * pause makes none. Runs that are leased go on.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const pauseRow = z.object({ workspace: z.string().nullable(), reason: z.string(), operator: z.string(), paused_at: z.string() });
export type ClaimPause = z.infer<typeof pauseRow>;
const doneRow = z.object({ done: z.boolean() });

/** `workspaceId` null: the installation. A pause that is there stays as it is. */
export async function pauseClaims(db: Executor, workspaceId: string | null, by: { operator: string; reason: string }): Promise<void> {
  await db.any(sql.prepared('ops_pause_claims', doneRow)`
    insert into claim_pause (workspace_id, reason, operator) values (${workspaceId}::uuid, ${by.reason}::text, ${by.operator}::text)
    on conflict on constraint ux_claim_pause do nothing returning true as done`);
}

export async function resumeClaims(db: Executor, workspaceId: string | null): Promise<void> {
  await db.any(sql.prepared('ops_resume_claims', doneRow)`
    delete from claim_pause where workspace_id is not distinct from ${workspaceId}::uuid returning true as done`);
}

/** The installation first. */
export function readPauses(db: Executor): Promise<readonly ClaimPause[]> {
  return db.any(sql.prepared('ops_pauses', pauseRow)`
    select w.slug as workspace, p.reason, p.operator, p.paused_at from claim_pause p left join workspace w on w.id = p.workspace_id
    order by w.slug nulls first`);
}

const waitingRow = z.object({ queued: z.number(), running: z.number(), paused: z.boolean() });

/** What a pause or its end concerns: turns that wait and run there, and whether exactly this pause is there. */
export function readPauseScope(db: Executor, workspaceId: string | null): Promise<z.infer<typeof waitingRow>> {
  return db.one(sql.prepared('ops_pause_scope', waitingRow)`
    select
      (select count(*)::int from mentor_turn t where t.status = 'QUEUED' and (${workspaceId}::uuid is null or t.workspace_id = ${workspaceId}::uuid)) as queued,
      (select count(*)::int from agent_run r where r.state = 'LEASED' and (${workspaceId}::uuid is null or r.workspace_id = ${workspaceId}::uuid)) as running,
      exists (select from claim_pause p where p.workspace_id is not distinct from ${workspaceId}::uuid) as paused`);
}
