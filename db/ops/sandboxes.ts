/**
 * Owns: sandboxes as operators page through them: whose each is, on which server, how old, what it holds.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const sandboxRow = z.object({
  id: z.string(),
  conversation: z.string(),
  workspace: z.string(),
  state: z.enum(['STARTING', 'READY', 'ENDED']),
  start_failed: z.boolean(),
  host_id: z.string(),
  host: z.string(),
  host_alive: z.boolean(),
  /** Since its start; of an ended one how long it lived. Milliseconds. */
  age_ms: z.number(),
  created_at: z.string(),
  ended_at: z.string().nullable(),
  /** The turn that it has. */
  turn: z.string().nullable(),
  epoch: z.number().nullable(),
});
export type SandboxRow = z.infer<typeof sandboxRow>;

export interface SandboxChoice {
  readonly state: 'live' | 'ended' | 'failed';
  /** A server's id or name. */
  readonly host: string | null;
  readonly workspace: string | null;
  readonly conversation: string | null;
  /** The last sandbox of the page before. */
  readonly before: string | null;
  readonly limit: number;
}

/** Newest first. */
export function readSandboxPage(db: Executor, c: SandboxChoice): Promise<readonly SandboxRow[]> {
  const state = {
    live: sql.fragment`b.state <> 'ENDED'`,
    ended: sql.fragment`b.state = 'ENDED' and not b.start_failed`,
    failed: sql.fragment`b.start_failed`,
  }[c.state];
  return db.any(sql.prepared(`ops_sandboxes_${c.state}`, sandboxRow)`
    select b.id, b.conversation_id as conversation, w.slug as workspace, b.state, b.start_failed, h.id as host_id, h.name as host,
      h.ended_at is null as host_alive, (extract(epoch from coalesce(b.ended_at, (select clock_timestamp())) - b.created_at) * 1000)::bigint as age_ms,
      b.created_at, b.ended_at, r.turn_id as turn, r.epoch
    from sandbox b join workspace w on w.id = b.workspace_id join sandbox_host h on h.id = b.host_id
      left join agent_run r on r.sandbox_id = b.id and r.state = 'LEASED'
    where ${state} and (${c.host}::text is null or h.name = ${c.host}::text or h.id::text = ${c.host}::text)
      and (${c.workspace}::text is null or w.slug = ${c.workspace}::text)
      and (${c.conversation}::uuid is null or b.conversation_id = ${c.conversation}::uuid)
      and (${c.before}::uuid is null or (b.created_at, b.id) < (select o.created_at, o.id from sandbox o where o.id = ${c.before}::uuid))
    order by b.created_at desc, b.id desc limit ${c.limit}::int`);
}
