/**
 * Owns: what the ledger knows of one turn beside its row: its entries by kind and size, and the sandboxes of its conversation since it was asked.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const entryRow = z.object({
  id: z.string(),
  seq: z.number(),
  kind: z.string(),
  bytes: z.number(),
  created_at: z.string(),
  erased: z.boolean(),
});
const sandboxRow = z.object({
  id: z.string(),
  host: z.string(),
  state: z.string(),
  start_failed: z.boolean(),
  created_at: z.string(),
  ended_at: z.string().nullable(),
});
const ENTRIES_MAX = 500;
const SANDBOXES_MAX = 20;

/** The entries of the turn in order, at most 500; `bytes` of what is stored. */
export function readTurnEntries(db: Executor, turnId: string): Promise<readonly z.infer<typeof entryRow>[]> {
  return db.any(sql.prepared('ops_turn_entries', entryRow)`
    select id, seq, kind, coalesce(octet_length(payload::text), octet_length(text), 0) as bytes, created_at, erased_at is not null as erased
    from mentor_entry where turn_id = ${turnId}::uuid order by seq limit ${ENTRIES_MAX}::int`);
}

/** The sandboxes that its conversation had while the turn was open, newest first, at most 20. */
export function readTurnSandboxes(db: Executor, turnId: string): Promise<readonly z.infer<typeof sandboxRow>[]> {
  return db.any(sql.prepared('ops_turn_sandboxes', sandboxRow)`
    select b.id, h.name as host, b.state, b.start_failed, b.created_at, b.ended_at
    from mentor_turn t join sandbox b on b.conversation_id = t.conversation_id join sandbox_host h on h.id = b.host_id
    where t.id = ${turnId}::uuid and coalesce(b.ended_at, 'infinity') >= t.created_at and b.created_at <= coalesce(t.ended_at, 'infinity')
    order by b.created_at desc limit ${SANDBOXES_MAX}::int`);
}
