/**
 * Owns: sandboxes that outlive their server (pods): which server answers for one, and taking over those of servers that are gone
 * (spec/decisions/0038). `sandboxes.ts` owns everything else about a sandbox.
 */
import { z } from 'zod';
import type { ConversationId, HostId, SandboxId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

const idRow = z.object({ id: z.string() });

/** What the objects of this installation in a cluster are labelled with; the same for ever. */
export async function installationId(db: Executor): Promise<string> {
  return (await db.one(sql.type(idRow)`select id from installation`)).id;
}

export interface OutlivingSandbox {
  readonly sandboxId: SandboxId;
  readonly conversationId: ConversationId;
  /** It holds a run, or waits at some server for one that it may get soon. */
  readonly busy: boolean;
}

/** A take-over is one bounded batch; the next sweep takes the rest. */
const TAKEN_AT_ONCE_MAX = 200;

const followedRow = z.object({ id: z.string(), conversation_id: z.string(), busy: z.boolean() });

/**
 * Takes over the sandboxes of hosts that are gone, and returns all live ones of this host. Two servers that look at the same moment share
 * them: a row that the other has locked is skipped. A host that was itself taken for dead takes nothing.
 */
export async function followSandboxes(db: Executor, hostId: HostId): Promise<readonly OutlivingSandbox[]> {
  const rows = await db.any(sql.prepared('ledger_follow_sandboxes', followedRow)`
    with left_behind as materialized (
      select b.id from sandbox b join sandbox_host h on h.id = b.host_id
      where b.outlives_host and b.state <> 'ENDED' and h.ended_at is not null
        and exists (select from sandbox_host own where own.id = ${hostId}::uuid and own.ended_at is null)
      order by b.id limit ${TAKEN_AT_ONCE_MAX}::int for no key update of b skip locked
    ), taken as (
      update sandbox b set host_id = ${hostId}::uuid from left_behind l where b.id = l.id returning b.id, b.conversation_id
    ), followed as (
      select b.id, b.conversation_id from sandbox b where b.host_id = ${hostId}::uuid and b.state <> 'ENDED'
      union select id, conversation_id from taken
    )
    select f.id, f.conversation_id,
      exists (select from agent_run r where r.conversation_id = f.conversation_id and r.state = 'LEASED' and r.sandbox_id = f.id)
        or exists (select from waiting_pull w where f.id = any(w.sandbox_ids)) as busy
    from followed f`);
  return rows.map((row) => ({
    sandboxId: row.id as SandboxId,
    conversationId: row.conversation_id as ConversationId,
    busy: row.busy,
  }));
}

/** Those of these sandboxes that are not ended, whichever server answers for them. */
export async function liveAmong(db: Executor, ids: readonly SandboxId[]): Promise<ReadonlySet<SandboxId>> {
  const rows = await db.any(sql.prepared('ledger_live_among', idRow)`
    select id from sandbox where id = any(${sql.array(ids, 'uuid')}) and state <> 'ENDED'`);
  return new Set(rows.map((row) => row.id as SandboxId));
}
