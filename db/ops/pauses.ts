/**
 * Owns: the pauses of claims. The view `claimable_turn` and the submit's folded claim respect them: a claim that begins after the commit of a
 * pause makes none. Runs that are leased go on.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

/** Where claims are paused: the whole installation (both null), one workspace, or one surface. */
export interface PausePlace {
  readonly workspaceId: string | null;
  readonly surface: 'app' | 'slack' | null;
}

const pauseRow = z.object({
  workspace: z.string().nullable(),
  surface: z.enum(['app', 'slack']).nullable(),
  reason: z.string(),
  operator: z.string(),
  paused_at: z.string(),
});
export type ClaimPause = z.infer<typeof pauseRow>;
const doneRow = z.object({ done: z.boolean() });

/** A pause that is there stays as it is. */
export async function pauseClaims(db: Executor, at: PausePlace, by: { operator: string; reason: string }): Promise<void> {
  await db.any(sql.prepared('ops_pause_claims', doneRow)`
    insert into claim_pause (workspace_id, surface, reason, operator)
    values (${at.workspaceId}::uuid, ${at.surface}::text, ${by.reason}::text, ${by.operator}::text)
    on conflict on constraint ux_claim_pause do nothing returning true as done`);
}

export async function resumeClaims(db: Executor, at: PausePlace): Promise<void> {
  await db.any(sql.prepared('ops_resume_claims', doneRow)`
    delete from claim_pause where workspace_id is not distinct from ${at.workspaceId}::uuid and surface is not distinct from ${at.surface}::text
    returning true as done`);
}

/** The installation first, then workspaces, then surfaces. */
export function readPauses(db: Executor): Promise<readonly ClaimPause[]> {
  return db.any(sql.prepared('ops_pauses', pauseRow)`
    select w.slug as workspace, p.surface, p.reason, p.operator, p.paused_at from claim_pause p left join workspace w on w.id = p.workspace_id
    order by p.surface nulls first, w.slug nulls first`);
}

const waitingRow = z.object({ queued: z.number(), running: z.number(), paused: z.boolean() });

/** What a pause or its end concerns: turns that wait and run there, and whether exactly this pause is there. */
export function readPauseScope(db: Executor, at: PausePlace): Promise<z.infer<typeof waitingRow>> {
  const there = sql.fragment`(${at.workspaceId}::uuid is null or t.workspace_id = ${at.workspaceId}::uuid)
    and (${at.surface}::text is null or t.surface = ${at.surface}::text)`;
  return db.one(sql.prepared('ops_pause_scope', waitingRow)`
    select (select count(*)::int from mentor_turn t where t.status = 'QUEUED' and ${there}) as queued,
      (select count(*)::int from agent_run r join mentor_turn t on t.id = r.turn_id where r.state = 'LEASED' and ${there}) as running,
      exists (select from claim_pause p where p.workspace_id is not distinct from ${at.workspaceId}::uuid
        and p.surface is not distinct from ${at.surface}::text) as paused`);
}
