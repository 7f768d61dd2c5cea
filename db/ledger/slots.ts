/**
 * Owns: the slot rows. rule: R4 (the number of rows is the capacity; a claim takes a row, an end frees it)
 * Lowering the capacity below what runs retires slots: they are claimed no more and go when they come free.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const countRow = z.object({ total: z.number(), held: z.number(), retiring: z.number() });

export interface SlotCounts {
  /** Slots that may be claimed or are held, without the retiring ones. */
  readonly total: number;
  readonly held: number;
  readonly retiring: number;
}

/** Brings the slot rows to `capacity`. Servers that start together take turns by a transaction lock. */
export async function reconcileSlots(db: Executor, capacity: number): Promise<SlotCounts> {
  await db.any(sql.type(z.object({ done: z.boolean() }))`
    with lock as materialized (select pg_advisory_xact_lock(hashtext('heph.turn_slot'))::text as taken),
    added as (
      insert into turn_slot (slot_no) select n from lock, generate_series(1, ${capacity}::int) as n
      on conflict (slot_no) do update set retiring = false where turn_slot.retiring
    ), retired as (
      update turn_slot s set retiring = true from lock where s.slot_no > ${capacity}::int and not s.retiring
    )
    select true as done from lock`);
  await dropRetiredSlots(db);
  return countSlots(db);
}

/** Removes retiring slots that came free. */
export async function dropRetiredSlots(db: Executor): Promise<void> {
  await db.any(sql.type(z.object({ slot_no: z.number() }))`
    delete from turn_slot where slot_no = any(array(
      select slot_no from turn_slot where retiring and run_id is null for update skip locked)) returning slot_no`);
}

export function countSlots(db: Executor): Promise<SlotCounts> {
  return db.one(sql.prepared('ledger_count_slots', countRow)`
    select count(*) filter (where not retiring)::int as total, count(run_id)::int as held, count(*) filter (where retiring)::int as retiring
    from turn_slot`);
}
