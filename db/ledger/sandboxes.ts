/**
 * Owns: sandboxes and the machines that run them. A conversation has one live sandbox (`ux_sandbox_live`).
 * A host proves that it lives by a session-level advisory lock (db/host-lock.ts); when it is dead its sandboxes end, and the reaper
 * takes their attempts back at once instead of after the lease.
 */
import { z } from 'zod';
import type { ConversationId, HostId, RunId, SandboxId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

const idRow = z.object({ id: z.string() });

/** One boot of one host. `lockKey` is what its session lock is taken on. */
export interface HostRow {
  readonly id: HostId;
  readonly name: string;
  readonly lockKey: number;
  /** Sandboxes that it may start at the same time. */
  readonly sandboxesMax: number;
}

/** No server takes over sandboxes of this kind any more, for example after a change of HEPH_SANDBOX_HOST. */
const UNWANTED_MS = 120_000;

export async function registerHost(db: Executor, host: HostRow): Promise<void> {
  await db.any(sql.type(idRow)`
    insert into sandbox_host (id, name, lock_key, sandboxes_max)
    values (${host.id}, ${host.name}, ${host.lockKey}, ${host.sandboxesMax}) returning id`);
}

/**
 * Ends hosts that are dead, and their sandboxes: an older boot of `predecessorOf` (its data directory is ours now), or a host whose
 * session lock was found free twice, `suspectMs` apart. A connection that was only lost takes its lock again in between. After a restart
 * of PostgreSQL every session lock is gone for a moment, so free locks count only `settleMs` after it started.
 * A sandbox that outlives its host is left for another server (outliving.ts); one that no server wants for two minutes ends after all.
 * Returns the number of hosts that were ended.
 */
export async function endDeadHosts(
  db: Executor,
  self: { readonly id: HostId; readonly predecessorOf: string | null },
  bounds: { readonly settleMs: number; readonly suspectMs: number },
): Promise<number> {
  const rows = await db.any(sql.prepared('ledger_end_dead_hosts', idRow)`
    with free as materialized (
      select h.id, h.suspected_at, h.name = ${self.predecessorOf}::text as replaced from sandbox_host h
      where h.ended_at is null and h.id <> ${self.id}::uuid
        and (h.name = ${self.predecessorOf}::text
          or (pg_postmaster_start_time() < clock_timestamp() - ${bounds.settleMs}::int * interval '1 ms'
            and pg_try_advisory_xact_lock(h.lock_key)))
      order by h.id for update of h skip locked
    ), suspect as (
      update sandbox_host h set suspected_at = clock_timestamp() from free where h.id = free.id and free.suspected_at is null
        and free.replaced is not true
    ), host as (
      update sandbox_host h set ended_at = clock_timestamp() from free
      where h.id = free.id
        and (free.replaced or free.suspected_at < clock_timestamp() - ${bounds.suspectMs}::int * interval '1 ms')
      returning h.id
    ), box as (
      update sandbox b set state = 'ENDED', ended_at = clock_timestamp() from host
      where b.host_id = host.id and b.state <> 'ENDED' and not b.outlives_host
    ), unwanted as (
      update sandbox b set state = 'ENDED', ended_at = clock_timestamp() from sandbox_host h
      where h.id = b.host_id and b.state <> 'ENDED' and b.outlives_host
        and h.ended_at < clock_timestamp() - ${UNWANTED_MS}::int * interval '1 ms'
    )
    select id from host`);
  return rows.length;
}

/** A host says goodbye: its sandboxes end, but for those that outlive it. */
export async function endHost(db: Executor, id: HostId): Promise<void> {
  await db.any(sql.type(idRow)`
    with host as (
      update sandbox_host set ended_at = clock_timestamp() where id = ${id}::uuid and ended_at is null returning id
    ), box as (
      update sandbox b set state = 'ENDED', ended_at = clock_timestamp() from host
      where b.host_id = host.id and b.state <> 'ENDED' and not b.outlives_host
    )
    select id from host`);
}

const wantedRow = z.object({ conversation_id: z.string(), workspace_id: z.string(), has_sandbox: z.boolean() });

export interface SandboxDemand {
  readonly conversationId: ConversationId;
  readonly workspaceId: WorkspaceId;
  readonly hasSandbox: boolean;
}

/**
 * The conversations whose turns are next in claim order, at most `rankMax`, best rank first. A turn that is not admitted gets no sandbox: the
 * CapacityActor ends it without one.
 */
export async function sandboxDemand(db: Executor, rankMax: number): Promise<readonly SandboxDemand[]> {
  const rows = await db.any(sql.prepared('ledger_sandbox_demand', wantedRow)`
    with next as materialized (
      select q.conversation_id, q.workspace_id, q.rank,
        exists (select 1 from sandbox b where b.conversation_id = q.conversation_id and b.state <> 'ENDED') as has_sandbox
      from claim_order q where q.rank <= ${rankMax}::int
    )
    select n.conversation_id, n.workspace_id, n.has_sandbox from next n join mentor_conversation c on c.id = n.conversation_id
    where n.has_sandbox or turn_admission(c.workspace_id, c.account_id)->>'refusal' is null
    order by n.rank`);
  return rows.map((row) => ({
    conversationId: row.conversation_id as ConversationId,
    workspaceId: row.workspace_id as WorkspaceId,
    hasSandbox: row.has_sandbox,
  }));
}

export interface NewSandbox {
  readonly conversationId: ConversationId;
  readonly workspaceId: WorkspaceId;
  readonly id: SandboxId;
  readonly hostId: HostId;
  /** SHA-256 of the credential, 32 bytes. */
  readonly credentialHash: Buffer;
  /** The end of its host does not end it; default false. */
  readonly outlivesHost?: boolean;
}

/**
 * False when the conversation has a live sandbox already (another server was faster), or when the host was ended: nobody would ever end a
 * sandbox of an ended host. A host that was taken for dead takes its lock again first (db/host-lock.ts).
 */
export async function insertSandbox(db: Executor, box: NewSandbox): Promise<boolean> {
  const row = await db.maybeOne(sql.type(idRow)`
    insert into sandbox (id, workspace_id, conversation_id, host_id, credential_hash, outlives_host)
    select ${box.id}::uuid, ${box.workspaceId}::uuid, ${box.conversationId}::uuid, h.id, ${sql.binary(box.credentialHash)},
      ${box.outlivesHost ?? false}::boolean
    from sandbox_host h where h.id = ${box.hostId}::uuid and h.ended_at is null for share
    on conflict (conversation_id) where state <> 'ENDED' do nothing
    returning id`);
  return row !== null;
}

const endedRow = z.object({ id: z.string(), leased: z.boolean(), start_failed: z.boolean() });

export interface EndedSandbox {
  /** It still held a leased run. */
  readonly leased: boolean;
  /** It counts as a start that failed: it broke, and was never given a run. */
  readonly startFailed: boolean;
}

/** Ends a sandbox: its credential is worth nothing from now on. `broke`: it could not be started, or its runner died. */
export async function endSandbox(db: Executor, id: SandboxId, broke = false): Promise<EndedSandbox> {
  const row = await db.maybeOne(sql.prepared('ledger_end_sandbox', endedRow)`
    update sandbox b set state = 'ENDED', ended_at = clock_timestamp(), start_failed = ${broke}::boolean and not exists (
      select from mentor_turn t join agent_run r on r.turn_id = t.id where t.conversation_id = b.conversation_id and r.sandbox_id = b.id)
    where b.id = ${id}::uuid and b.state <> 'ENDED'
    returning b.id, b.start_failed, exists (select 1 from agent_run r where r.sandbox_id = b.id and r.state = 'LEASED') as leased`);
  return { leased: row?.leased ?? false, startFailed: row?.start_failed ?? false };
}

/**
 * Ends sandboxes whose lease has run out: their runner does not answer, and a conversation must not wait for it. What they held is taken
 * back like that of any ended sandbox (reap.ts). A run that is being renewed or ended at this moment is locked, and skipped.
 */
export async function endSilentSandboxes(db: Executor, batchMax: number): Promise<readonly SandboxId[]> {
  const rows = await db.any(sql.prepared('ledger_end_silent_sandboxes', idRow)`
    with silent as materialized (
      select b.id from agent_run r join sandbox b on b.id = r.sandbox_id
      where r.state = 'LEASED' and r.lease_until <= (select clock_timestamp()) and b.state <> 'ENDED'
      order by r.lease_until limit ${batchMax}::int for no key update of r, b skip locked
    )
    update sandbox b set state = 'ENDED', ended_at = clock_timestamp() from silent where b.id = silent.id
    returning b.id`);
  return rows.map((row) => row.id as SandboxId);
}

/** Sandboxes of a host that are not ended. */
export async function liveSandboxes(db: Executor, hostId: HostId): Promise<ReadonlySet<SandboxId>> {
  const rows = await db.any(sql.prepared('ledger_live_sandboxes', idRow)`
    select id from sandbox where host_id = ${hostId}::uuid and state <> 'ENDED'`);
  return new Set(rows.map((row) => row.id as SandboxId));
}

/**
 * Ends a sandbox unless its conversation has a leased run. The conversation is locked at the version of the read: a claim in between raises
 * the version and wins; a claim afterwards finds the sandbox ended.
 */
export async function endIdleSandbox(db: Executor, id: SandboxId): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('ledger_end_idle_sandbox', idRow)`
    with seen as materialized (
      select b.id, b.conversation_id, c.version from sandbox b join mentor_conversation c on c.id = b.conversation_id
      where b.id = ${id}::uuid and b.state <> 'ENDED'
        and not exists (select 1 from agent_run r where r.conversation_id = b.conversation_id and r.state = 'LEASED')
    ), conv as materialized (
      select seen.id from mentor_conversation c join seen on seen.conversation_id = c.id
      where c.version = seen.version for update of c skip locked
    )
    update sandbox b set state = 'ENDED', ended_at = clock_timestamp() from conv where b.id = conv.id and b.state <> 'ENDED'
    returning b.id`);
  return row !== null;
}

const heldRow = z.object({ run_id: z.string(), epoch: z.number(), lease_ms: z.number(), deadline_ms: z.number() });

/**
 * The claim that this sandbox holds and has made no call of: a lost reply to its pull. The same claim is given again,
 * so that a lost reply does not burn an attempt.
 */
export async function uncalledClaim(
  db: Executor,
  sandboxId: SandboxId,
): Promise<{ runId: RunId; epoch: number; leaseTtlMs: number; deadlineMs: number } | null> {
  const row = await db.maybeOne(sql.prepared('ledger_uncalled_claim', heldRow)`
    select r.id as run_id, r.epoch, (extract(epoch from r.lease_until - clock_timestamp()) * 1000)::int as lease_ms,
      (extract(epoch from r.deadline_at - clock_timestamp()) * 1000)::int as deadline_ms
    from agent_run r
    where r.sandbox_id = ${sandboxId} and r.state = 'LEASED' and r.called_at is null and r.lease_until > clock_timestamp()`);
  if (!row) return null;
  return { runId: row.run_id as RunId, epoch: row.epoch, leaseTtlMs: Math.max(0, row.lease_ms), deadlineMs: Math.max(0, row.deadline_ms) };
}
