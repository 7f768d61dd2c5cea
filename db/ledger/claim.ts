/**
 * Owns: the claim statement. Only the CapacityActor calls it, with all parked pulls of its server at once.
 * rule: R4 (a claim takes free slot rows FOR UPDATE SKIP LOCKED)  rule: R1 (one leased run per conversation)
 * rule: R8 (lease and deadline by the database clock)  rule: R9 (the attempt is counted here)
 * Conversations are locked first, ORDER BY id, SKIP LOCKED, and only at the version that the candidates were read at: whoever changed one
 * in between keeps it, and the next claim sees the change.
 */
import { z } from 'zod';
import type { AccountId, ConversationId, RunId, SandboxId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

/** Durations of a claim, milliseconds. */
export interface LeaseTimes {
  readonly leaseTtlMs: number;
  readonly deadlineMs: number;
  /** Between the deadline (or a stop) and the end of the claim. */
  readonly graceMs: number;
}

/** How long a new lease lasts: it never goes past the claim's bound. */
export function leaseMs({ leaseTtlMs, deadlineMs, graceMs }: LeaseTimes): number {
  return Math.min(leaseTtlMs, deadlineMs + graceMs);
}

/**
 * Candidates beyond the free slots. One that another writer holds at this moment is skipped, and must not cost the next in line its slot;
 * without a free slot there are no candidates, so that nobody is held up for nothing.
 */
const SPARE_CANDIDATES = 8;

/** A sandbox that waits for its conversation's next run. */
export interface Offer {
  readonly conversationId: ConversationId;
  readonly sandboxId: SandboxId;
}

export interface Grant {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  readonly conversationId: ConversationId;
  readonly sandboxId: SandboxId;
  readonly version: number;
  readonly turnId: TurnId;
  readonly runId: RunId;
  readonly epoch: number;
}

const grantRow = z.object({
  workspace_id: z.string(),
  account_id: z.string(),
  conversation_id: z.string(),
  sandbox_id: z.string(),
  version: z.number(),
  turn_id: z.string(),
  run_id: z.string(),
  epoch: z.number(),
});

/** Claims at most one turn per offer, in claim order, while there are free slots. */
export async function claimTurns(db: Executor, offers: readonly Offer[], times: LeaseTimes): Promise<readonly Grant[]> {
  const conversations = sql.array(
    offers.map((o) => o.conversationId),
    'uuid',
  );
  const sandboxes = sql.array(
    offers.map((o) => o.sandboxId),
    'uuid',
  );
  const rows = await db.any(sql.prepared('ledger_claim', grantRow)`
    with offer as materialized (
      select o.conversation_id, o.sandbox_id from unnest(${conversations}, ${sandboxes}) as o(conversation_id, sandbox_id)
      join sandbox b on b.id = o.sandbox_id and b.conversation_id = o.conversation_id and b.state <> 'ENDED'
    ), candidate as materialized (
      select q.id as turn_id, q.conversation_id, q.rank, o.sandbox_id, c.version
      from claim_order q join offer o using (conversation_id) join mentor_conversation c on c.id = q.conversation_id
      order by q.rank limit (select count(*) + sign(count(*))::int * ${SPARE_CANDIDATES}::int from turn_slot where run_id is null and not retiring)
    ), locked as materialized (
      select c.id as conversation_id, k.turn_id, k.sandbox_id, k.rank
      from mentor_conversation c join candidate k on k.conversation_id = c.id join sandbox b on b.id = k.sandbox_id
      where c.version = k.version and b.state <> 'ENDED'
      order by c.id for update of c skip locked for share of b skip locked
    ), slot as materialized (
      select s.slot_no from turn_slot s where s.run_id is null and not s.retiring
      order by s.slot_no limit (select count(*) from locked) for update of s skip locked
    ), granted as materialized (
      select l.conversation_id, l.turn_id, l.sandbox_id, s.slot_no
      from (select l.*, row_number() over (order by l.rank) as nth from locked l) l
      join (select s.slot_no, row_number() over (order by s.slot_no) as nth from slot s) s using (nth)
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from granted g where c.id = g.conversation_id
      returning c.id, c.workspace_id, c.account_id, c.version
    ), turn as (
      update mentor_turn t set status = 'RUNNING', attempt = t.attempt + 1, started_at = coalesce(t.started_at, clock_timestamp())
      from granted g join conv on conv.id = g.conversation_id where t.id = g.turn_id
      returning t.id
    ), run as (
      update agent_run r set state = 'LEASED', epoch = r.epoch + 1, sandbox_id = g.sandbox_id, called_at = null,
        lease_until = clock_timestamp() + ${leaseMs(times)}::int * interval '1 ms',
        deadline_at = clock_timestamp() + ${times.deadlineMs}::int * interval '1 ms',
        bound_at = clock_timestamp() + ${times.deadlineMs + times.graceMs}::int * interval '1 ms'
      from granted g join turn on turn.id = g.turn_id where r.turn_id = g.turn_id
      returning r.id, r.epoch, r.turn_id
    ), taken as (
      update turn_slot s set run_id = run.id from granted g join run on run.turn_id = g.turn_id where s.slot_no = g.slot_no
    )
    select conv.workspace_id, conv.account_id, conv.id as conversation_id, conv.version, g.sandbox_id, g.turn_id, run.id as run_id, run.epoch
    from granted g join conv on conv.id = g.conversation_id join run on run.turn_id = g.turn_id`);
  return rows.map((row) => ({
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    conversationId: row.conversation_id as ConversationId,
    sandboxId: row.sandbox_id as SandboxId,
    version: row.version,
    turnId: row.turn_id as TurnId,
    runId: row.run_id as RunId,
    epoch: row.epoch,
  }));
}
