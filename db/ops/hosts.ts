/**
 * Owns: servers as operators see them (a server is a row of `sandbox_host`, one for each boot), and what a server tells of itself.
 */
import { z } from 'zod';
import type { HostId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

const idRow = z.object({ id: z.string() });

/** `build`: which program this server runs, at most 100 characters. */
export async function describeHost(db: Executor, id: HostId, build: string): Promise<void> {
  await db.any(
    sql.prepared('ops_describe_host', idRow)`update sandbox_host set build = ${build}::text where id = ${id}::uuid returning id`,
  );
}

/** The server takes nothing new from now on. */
export async function noteDraining(db: Executor, id: HostId): Promise<void> {
  await db.any(sql.prepared('ops_note_draining', idRow)`
    update sandbox_host set draining_at = coalesce(draining_at, clock_timestamp()) where id = ${id}::uuid returning id`);
}

const hostRow = z.object({
  id: z.string(),
  name: z.string(),
  build: z.string().nullable(),
  started_at: z.string(),
  draining_at: z.string().nullable(),
  ended_at: z.string().nullable(),
  suspected: z.boolean(),
  sandboxes_max: z.number(),
  sandboxes: z.number(),
  running: z.number(),
});
export type HostFacts = z.infer<typeof hostRow>;

const HOSTS_MAX = 100;

/** Servers that live or ended in the last hour, newest first, at most 100. */
export function readHosts(db: Executor): Promise<readonly HostFacts[]> {
  return db.any(sql.prepared('ops_hosts', hostRow)`
    select h.id, h.name, h.build, h.started_at, h.draining_at, h.ended_at, h.suspected_at is not null and h.ended_at is null as suspected,
      h.sandboxes_max, (select count(*)::int from sandbox b where b.host_id = h.id and b.state <> 'ENDED') as sandboxes,
      (select count(*)::int from sandbox b join agent_run r on r.sandbox_id = b.id and r.state = 'LEASED' where b.host_id = h.id) as running
    from sandbox_host h where h.ended_at is null or h.ended_at > (select clock_timestamp()) - interval '1 hour'
    order by h.started_at desc limit ${HOSTS_MAX}::int`);
}
