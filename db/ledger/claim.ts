/**
 * Owns: the claim statement. Only the CapacityActor calls it, with all parked pulls of its server at once. It ranks these and the pulls that
 * wait at other servers (table `waiting_pull`, ADR 14) and grants to the first, wherever their pulls are parked: which server asks first after a
 * release decides nothing, and no slot stays free for a server that is slow. What it could not serve of its own it leaves there for the others.
 * A candidate is admitted in the statement that claims it: its model, price and limits are frozen with it, or it ends here with the reason
 * why not, and its slot goes to the next one.
 * rule: R4 (a claim takes free slot rows FOR UPDATE SKIP LOCKED)  rule: R1 (one leased run per conversation)
 * rule: R8 (lease and deadline by the database clock)  rule: R9 (the attempt is counted here)
 * Conversations are locked first, ORDER BY id, SKIP LOCKED, and only at the version that the candidates were read at: whoever changed one
 * in between keeps it, and the next claim sees the change.
 */
import { z } from 'zod';
import type { AccountId, ConversationId, HostId, RunId, SandboxId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import type { RefusalTexts } from '../models/admission.ts';
import { type Executor, sql } from '../pool.ts';
import { type RefusedTurn, refusedRow, toRefused } from './refuse.ts';

/** Durations of a claim, milliseconds. The deadline is that of the admission. */
export interface LeaseTimes {
  readonly leaseTtlMs: number;
  /** Between the deadline (or a stop) and the end of the claim. */
  readonly graceMs: number;
}

/**
 * Candidates beyond the free slots. One that another writer holds at this moment is skipped, and must not cost the next in line its slot;
 * without a free slot there are no candidates, so that nobody is held up for nothing.
 */
const SPARE_CANDIDATES = 8;

/** A pull that waits is forgotten when its server has not asked for this long. Servers ask at least with each sweep, once a second. */
export const PULL_TTL_MS = 3_000;

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
  /** A new lease never goes past the claim's bound. */
  readonly leaseTtlMs: number;
  readonly deadlineMs: number;
}

/** All pulls that are parked at one server and whose conversation may have a turn for them. */
export interface ParkedOffers {
  /** The server's boot; while it lives it holds its session lock (db/host-lock.ts). */
  readonly hostId: HostId;
  readonly offers: readonly Offer[];
}

export interface ClaimRules extends LeaseTimes {
  readonly refusals: RefusalTexts;
}

export interface Claimed {
  /** Also to pulls that are parked at other servers: those find the claim in their rows and answer it. */
  readonly grants: readonly Grant[];
  /** Turns that were ended because they are not admitted. */
  readonly refused: readonly RefusedTurn[];
}

const claimedRow = refusedRow.extend({
  refusal: z.string().nullable(),
  sandbox_id: z.string(),
  epoch: z.number(),
  lease_ms: z.number().nullable(),
  deadline_ms: z.number().nullable(),
});

/** Claims at most one turn per waiting pull of the installation, in claim order, while there are free slots. */
export async function claimTurns(db: Executor, parked: ParkedOffers, rules: ClaimRules): Promise<Claimed> {
  const { hostId } = parked;
  const { leaseTtlMs, graceMs, refusals } = rules;
  const rows = await db.any(sql.prepared('ledger_claim', claimedRow)`
    with ${waitingOffers(parked)}, candidate as materialized (
      select q.id as turn_id, q.conversation_id, q.rank, o.sandbox_id, c.version, c.workspace_id, c.account_id
      from claim_order q join offer o on o.turn_id = q.id join mentor_conversation c on c.id = q.conversation_id
      join sandbox b on b.id = o.sandbox_id and b.conversation_id = q.conversation_id and b.state <> 'ENDED'
      order by q.rank limit (select count(*) + sign(count(*))::int * ${SPARE_CANDIDATES}::int from turn_slot where run_id is null and not retiring)
    ), judged as materialized (
      select k.*, turn_admission(k.workspace_id, k.account_id) as admission from candidate k
    ), locked as materialized (
      select c.id as conversation_id, k.turn_id, k.sandbox_id, k.rank, k.admission, k.admission->>'refusal' as refusal
      from mentor_conversation c join judged k on k.conversation_id = c.id join sandbox b on b.id = k.sandbox_id
      where c.version = k.version and b.state <> 'ENDED'
      order by c.id for update of c skip locked for share of b skip locked
    ), slot as materialized (
      select s.slot_no from turn_slot s where s.run_id is null and not s.retiring
      order by s.slot_no limit (select count(*) from locked where refusal is null) for update of s skip locked
    ), decided as materialized (
      select l.conversation_id, l.turn_id, l.sandbox_id, l.admission, null as refusal, s.slot_no,
        (l.admission->>'deadlineMs')::int as deadline_ms,
        least(${leaseTtlMs}::int, (l.admission->>'deadlineMs')::int + ${graceMs}::int) as lease_ms
      from (select l.*, row_number() over (order by l.rank) as nth from locked l where l.refusal is null) l
      join (select s.slot_no, row_number() over (order by s.slot_no) as nth from slot s) s using (nth)
      union all
      select l.conversation_id, l.turn_id, l.sandbox_id, null, l.refusal, null, null, null from locked l where l.refusal is not null
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from decided d where c.id = d.conversation_id
      returning c.id, c.workspace_id, c.account_id, c.version
    ), turn as (
      update mentor_turn t set
        status = case when d.refusal is null then 'RUNNING' else 'FAILED' end,
        attempt = case when d.refusal is null then t.attempt + 1 else t.attempt end,
        started_at = case when d.refusal is null then coalesce(t.started_at, clock_timestamp()) else t.started_at end,
        ended_at = case when d.refusal is not null then clock_timestamp() end,
        error_code = d.refusal, error_text = ${JSON.stringify(refusals)}::json->>d.refusal,
        admission = coalesce(d.admission, t.admission)
      from decided d join conv on conv.id = d.conversation_id where t.id = d.turn_id
      returning t.id, t.surface, t.created_at
    ), run as (
      update agent_run r set
        state = case when d.refusal is null then 'LEASED' else 'ENDED' end,
        ended_at = case when d.refusal is not null then clock_timestamp() end,
        epoch = case when d.refusal is null then r.epoch + 1 else r.epoch end,
        sandbox_id = case when d.refusal is null then d.sandbox_id end, called_at = null, context_erasures = tree_erasures(r.conversation_id),
        lease_until = clock_timestamp() + d.lease_ms * interval '1 ms',
        deadline_at = clock_timestamp() + d.deadline_ms * interval '1 ms',
        bound_at = clock_timestamp() + (d.deadline_ms + ${graceMs}::int) * interval '1 ms'
      from decided d join turn on turn.id = d.turn_id where r.turn_id = d.turn_id
      returning r.id, r.epoch, r.turn_id
    ), taken as (
      update turn_slot s set run_id = run.id from decided d join run on run.turn_id = d.turn_id where s.slot_no = d.slot_no
    ), ${leftForOthers(hostId)}
    select conv.workspace_id, conv.account_id, conv.id as conversation_id, conv.version, d.sandbox_id, d.turn_id, run.id as run_id, run.epoch,
      d.refusal, d.lease_ms, d.deadline_ms, turn.surface, (extract(epoch from clock_timestamp() - turn.created_at) * 1000)::float8 as age_ms
    from decided d join conv on conv.id = d.conversation_id join turn on turn.id = d.turn_id join run on run.turn_id = d.turn_id`);
  const grants = rows.flatMap((row) => (row.refusal === null ? [toGrant(row)] : []));
  const refused = rows.flatMap((row) => (row.refusal === null ? [] : [toRefused({ ...row, refusal: row.refusal })]));
  return { grants, refused };
}

/** The pulls of this server whose conversation has a claimable turn (`mine`), and with them those that living servers left in the rows (`offer`). */
function waitingOffers({ hostId, offers }: ParkedOffers) {
  const conversations = offers.map((offer) => offer.conversationId);
  const sandboxes = offers.map((offer) => offer.sandboxId);
  return sql.fragment`
    mine as materialized (
      select t.id as turn_id, o.sandbox_id from unnest(${sql.array(conversations, 'uuid')}, ${sql.array(sandboxes, 'uuid')}) as o(conversation_id, sandbox_id)
      join sandbox b on b.id = o.sandbox_id and b.conversation_id = o.conversation_id and b.state <> 'ENDED'
      join claimable_turn t on t.conversation_id = o.conversation_id
    ), peer as materialized (
      select w.turn_ids, w.sandbox_ids, h.lock_key from waiting_pull w join sandbox_host h on h.id = w.host_id
      where w.host_id <> ${hostId}::uuid and w.open_until > (select clock_timestamp()) and h.ended_at is null
    ), living as materialized (
      select p.turn_ids, p.sandbox_ids from peer p where not pg_try_advisory_xact_lock_shared(p.lock_key)
    ), offer as materialized (
      select turn_id, sandbox_id from mine
      union
      select w.turn_id, w.sandbox_id from living l, unnest(l.turn_ids, l.sandbox_ids) as w(turn_id, sandbox_id)
    )`;
}

/** What was not served of this server's own is written down for the others. */
function leftForOthers(hostId: HostId) {
  return sql.fragment`
    waits as materialized (
      select array_agg(m.turn_id order by m.turn_id) as turn_ids, array_agg(m.sandbox_id order by m.turn_id) as sandbox_ids
      from mine m where not exists (select from decided d where d.turn_id = m.turn_id)
    ), recorded as (
      insert into waiting_pull as w (host_id, turn_ids, sandbox_ids, open_until)
      select ${hostId}::uuid, waits.turn_ids, waits.sandbox_ids, clock_timestamp() + ${PULL_TTL_MS}::int * interval '1 ms'
      from waits where waits.turn_ids is not null
      on conflict (host_id) do update set turn_ids = excluded.turn_ids, sandbox_ids = excluded.sandbox_ids, open_until = excluded.open_until
      where (w.turn_ids, w.sandbox_ids) is distinct from (excluded.turn_ids, excluded.sandbox_ids)
        or w.open_until < excluded.open_until - ${PULL_TTL_MS}::int / 2 * interval '1 ms'
    ), none_wait as (
      delete from waiting_pull w using waits where w.host_id = ${hostId}::uuid and waits.turn_ids is null
    )`;
}

function toGrant(row: z.infer<typeof claimedRow>): Grant {
  return {
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    conversationId: row.conversation_id as ConversationId,
    sandboxId: row.sandbox_id as SandboxId,
    version: row.version,
    turnId: row.turn_id as TurnId,
    runId: row.run_id as RunId,
    epoch: row.epoch,
    leaseTtlMs: row.lease_ms ?? 0,
    deadlineMs: row.deadline_ms ?? 0,
  };
}
