/**
 * Owns: ending turns that are not admitted although no sandbox or no slot is there for them: a refusal needs neither. Only the CapacityActor
 * calls it. (A candidate of a claim is refused by the claim itself.)
 * Conversations are locked first, ORDER BY id, SKIP LOCKED, at the version of the read; a turn that somebody claims meanwhile is left alone.
 * rule: R6 (FAILED-ENDED is a legal pair)
 */
import { z } from 'zod';
import type { Surface } from '../../src/contract/common.ts';
import type { AccountId, ConversationId, RunId, TurnId, WorkspaceId } from '../../src/kernel/ids.ts';
import type { AdmissionRefusal, RefusalTexts } from '../models/admission.ts';
import { type Executor, sql } from '../pool.ts';

/** A queued turn that was ended without an attempt. */
export interface EndedTurn {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
  readonly conversationId: ConversationId;
  readonly version: number;
  readonly turnId: TurnId;
  readonly runId: RunId;
  readonly surface: Surface;
  /** Since the question, milliseconds. */
  readonly ageMs: number;
}

export interface RefusedTurn extends EndedTurn {
  readonly refusal: AdmissionRefusal;
}

export const endedRow = z.object({
  workspace_id: z.string(),
  account_id: z.string(),
  conversation_id: z.string(),
  version: z.number(),
  turn_id: z.string(),
  run_id: z.string(),
  surface: z.enum(['app', 'slack']),
  age_ms: z.number(),
});

export const refusedRow = endedRow.extend({ refusal: z.string() });

export function toRefused(row: z.infer<typeof refusedRow>): RefusedTurn {
  return { ...toEnded(row), refusal: row.refusal as AdmissionRefusal };
}

export function toEnded(row: z.infer<typeof endedRow>): EndedTurn {
  return {
    workspaceId: row.workspace_id as WorkspaceId,
    accountId: row.account_id as AccountId,
    conversationId: row.conversation_id as ConversationId,
    version: row.version,
    turnId: row.turn_id as TurnId,
    runId: row.run_id as RunId,
    surface: row.surface,
    ageMs: row.age_ms,
  };
}

/** Ends what is not admitted among the first turns of these conversations. */
export function refuseTurns(
  db: Executor,
  conversationIds: readonly ConversationId[],
  texts: RefusalTexts,
): Promise<readonly RefusedTurn[]> {
  const candidates = sql.fragment`
    select q.id as turn_id, q.conversation_id from claimable_turn q where q.conversation_id = any(${sql.array(conversationIds, 'uuid')})`;
  return refuse(db, { name: 'ledger_refuse', candidates }, texts);
}

/** The same for the oldest claimable turns of the installation, at most `turnsMax`: what made them refusable may have come after them. */
export function refuseOldest(db: Executor, turnsMax: number, texts: RefusalTexts): Promise<readonly RefusedTurn[]> {
  const candidates = sql.fragment`
    select q.id as turn_id, q.conversation_id from claimable_turn q order by q.created_at limit ${turnsMax}::int`;
  return refuse(db, { name: 'ledger_refuse_oldest', candidates }, texts);
}

async function refuse(
  db: Executor,
  { name, candidates }: { readonly name: string; readonly candidates: ReturnType<typeof sql.fragment> },
  texts: RefusalTexts,
): Promise<readonly RefusedTurn[]> {
  const rows = await db.any(sql.prepared(name, refusedRow)`
    with candidate as materialized (${candidates}
    ), at as materialized (
      select k.turn_id, c.id as conversation_id, c.version, c.workspace_id, c.account_id
      from candidate k join mentor_conversation c on c.id = k.conversation_id
    ), person as materialized (
      select p.workspace_id, p.account_id, turn_admission(p.workspace_id, p.account_id)->>'refusal' as refusal
      from (select distinct workspace_id, account_id from at) p
    ), locked as materialized (
      select c.id as conversation_id, at.turn_id, p.refusal
      from at join person p using (workspace_id, account_id) join mentor_conversation c on c.id = at.conversation_id
      where p.refusal is not null and c.version = at.version
      order by c.id for update of c skip locked
    ), conv as (
      update mentor_conversation c set version = c.version + 1 from locked l where c.id = l.conversation_id
      returning c.id, c.workspace_id, c.account_id, c.version
    ), turn as (
      update mentor_turn t set status = 'FAILED', ended_at = clock_timestamp(), error_code = l.refusal,
        error_text = ${JSON.stringify(texts)}::json->>l.refusal
      from locked l join conv on conv.id = l.conversation_id where t.id = l.turn_id
      returning t.id, t.surface, t.created_at
    ), run as (
      update agent_run r set state = 'ENDED', ended_at = clock_timestamp() from turn where r.turn_id = turn.id
      returning r.id, r.turn_id
    )
    select conv.workspace_id, conv.account_id, conv.id as conversation_id, conv.version, l.turn_id, run.id as run_id, l.refusal,
      turn.surface, (extract(epoch from clock_timestamp() - turn.created_at) * 1000)::float8 as age_ms
    from locked l join conv on conv.id = l.conversation_id join turn on turn.id = l.turn_id join run on run.turn_id = l.turn_id`);
  return rows.map(toRefused);
}
