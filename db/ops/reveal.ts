/**
 * Owns: showing one entry's words to an operator. The row in the log and the words come out of one statement: no words without a row.
 * The row holds where the entry is and how large it is, never what it says. What is erased, or belongs to somebody whose erasure was asked
 * for, is not found. rule: R17 (the key is unique: a repeat shows the words again to the same operator for a while, without a second row)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

export interface RevealOrder {
  /** Of the log's row. */
  readonly id: string;
  readonly entryId: string;
  readonly reason: string;
  readonly idempotencyKey: string;
  readonly operator: string;
}

/** Of the text and of the payload, characters; what is longer is cut. */
export const REVEAL_MAX_CHARS = 200_000;
/** How long a repeat with the same key shows the same words. */
export const REVEAL_REPEAT_MS = 600_000;

const revealedRow = z.object({
  id: z.string(),
  conversation_id: z.string(),
  turn_id: z.string().nullable(),
  seq: z.number(),
  kind: z.string(),
  created_at: z.string(),
  text: z.string().nullable(),
  payload: z.string().nullable(),
  cut: z.boolean(),
  /** This statement wrote the row; else it was there before. */
  logged: z.boolean(),
});
export type RevealedRow = z.infer<typeof revealedRow>;

/** null: there is no such entry, it is erased, or the key was used for something else. */
export function revealEntry(db: Executor, o: RevealOrder): Promise<RevealedRow | null> {
  return db.maybeOne(sql.prepared('ops_reveal_entry', revealedRow)`
    with entry as materialized (
      select e.id, e.conversation_id, e.turn_id, e.seq, e.kind, e.created_at, e.text, e.payload::text as payload
      from mentor_entry e join mentor_conversation c on c.id = e.conversation_id join account a on a.id = c.account_id
      where e.id = ${o.entryId}::uuid and e.erased_at is null and a.erasure_requested_at is null for share of e
    ), logged as (
      insert into operator_action (id, idempotency_key, operator, action, target, reason, state, state_before, state_after, finished_at)
      select ${o.id}::uuid, ${o.idempotencyKey}::text, ${o.operator}::text, 'reveal-entry', e.id::text, ${o.reason}::text, 'DONE',
        json_build_object('kind', e.kind, 'seq', e.seq, 'conversation', e.conversation_id),
        json_build_object('shown', true, 'bytes', coalesce(octet_length(e.payload), octet_length(e.text), 0)), clock_timestamp()
      from entry e on conflict (idempotency_key) do nothing returning id
    ), known as (
      select l.id from logged l
      union all
      select k.id from operator_action k where k.idempotency_key = ${o.idempotencyKey}::text and k.action = 'reveal-entry'
        and k.target = ${o.entryId}::uuid::text and k.operator = ${o.operator}::text
        and k.created_at > (select clock_timestamp()) - ${REVEAL_REPEAT_MS}::int * interval '1 ms'
    )
    select e.id, e.conversation_id, e.turn_id, e.seq, e.kind, e.created_at, left(e.text, ${REVEAL_MAX_CHARS}::int) as text,
      left(e.payload, ${REVEAL_MAX_CHARS}::int) as payload,
      greatest(char_length(e.text), char_length(e.payload)) > ${REVEAL_MAX_CHARS}::int as cut, exists (select from logged) as logged
    from entry e where exists (select from known)`);
}

const placeRow = z.object({
  conversation_id: z.string(),
  seq: z.number(),
  kind: z.string(),
  bytes: z.number(),
  erased: z.boolean(),
});
export type EntryPlace = z.infer<typeof placeRow>;

/** Where an entry is and how large; `erased` also when the erasure of its person was asked for. null: there is no such entry. */
export function findEntryPlace(db: Executor, entryId: string): Promise<EntryPlace | null> {
  return db.maybeOne(sql.prepared('ops_entry_place', placeRow)`
    select e.conversation_id, e.seq, e.kind, coalesce(octet_length(e.payload::text), octet_length(e.text), 0) as bytes,
      e.erased_at is not null or a.erasure_requested_at is not null as erased
    from mentor_entry e join mentor_conversation c on c.id = e.conversation_id join account a on a.id = c.account_id
    where e.id = ${entryId}::uuid`);
}
