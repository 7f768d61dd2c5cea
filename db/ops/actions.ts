/**
 * Owns: the log of what operators do. rule: R17 (a row is written before the action and closed after it; the key is unique)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const ACTIONS = [
  ...(['stop', 'requeue', 'skip', 'release', 'pause-claims', 'resume-claims', 'drain'] as const),
  ...(['outbox-sent', 'outbox-again', 'reveal-entry', 'set-operator'] as const),
] as const;
export type ActionName = (typeof ACTIONS)[number];
/** Names of states and counts. */
export type StateNote = Readonly<Record<string, string | number | boolean | null>>;

const noteSchema = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));
const actionRow = z.object({
  id: z.string(),
  idempotency_key: z.string(),
  operator: z.string(),
  action: z.enum(ACTIONS),
  target: z.string(),
  reason: z.string(),
  state: z.enum(['BEGUN', 'DONE']),
  state_before: noteSchema,
  state_after: noteSchema.nullable(),
  created_at: z.string(),
  finished_at: z.string().nullable(),
  batch_id: z.string().nullable(),
});
export type ActionRow = z.infer<typeof actionRow>;

const COLUMNS = sql.fragment`id, idempotency_key, operator, action, target, reason, state, state_before, state_after, created_at,
  finished_at, batch_id`;

export interface NewAction {
  readonly id: string;
  readonly idempotencyKey: string;
  readonly operator: string;
  readonly action: ActionName;
  readonly target: string;
  readonly reason: string;
  readonly before: StateNote;
}

/** The row of this key: the new one, or the one that was there before (then its `id` is another). */
export async function beginAction(db: Executor, a: NewAction): Promise<ActionRow> {
  const inserted = await db.maybeOne(sql.prepared('ops_begin_action', actionRow)`
    insert into operator_action (id, idempotency_key, operator, action, target, reason, state_before)
    values (${a.id}::uuid, ${a.idempotencyKey}::text, ${a.operator}::text, ${a.action}::text, ${a.target}::text, ${a.reason}::text,
      ${JSON.stringify(a.before)}::json)
    on conflict (idempotency_key) do nothing returning ${COLUMNS}`);
  return inserted ?? db.one(findQuery(a.idempotencyKey));
}

export interface BatchedAction {
  readonly id: string;
  readonly idempotencyKey: string;
  readonly target: string;
  readonly before: StateNote;
}

/** The rows of a batch, all written at once before the first deed. A row whose key is there already stays as it is. */
export async function beginBatch(
  db: Executor,
  batch: Pick<NewAction, 'action' | 'operator' | 'reason'> & { readonly id: string },
  rows: readonly BatchedAction[],
): Promise<void> {
  const texts = (pick: (row: BatchedAction) => string) => sql.array(rows.map(pick), 'text');
  await db.any(sql.prepared('ops_begin_batch', z.object({ id: z.string() }))`
    insert into operator_action (id, idempotency_key, operator, action, target, reason, state_before, batch_id)
    select n.id::uuid, n.key, ${batch.operator}::text, ${batch.action}::text, n.target, ${batch.reason}::text, n.before::json, ${batch.id}::uuid
    from unnest(${texts(({ id }) => id)}, ${texts((row) => row.idempotencyKey)}, ${texts(({ target }) => target)},
      ${texts(({ before }) => JSON.stringify(before))}) as n(id, key, target, before)
    on conflict (idempotency_key) do nothing returning id`);
}

/** The rows of a batch in the order in which they were written. */
export function readBatch(db: Executor, batchId: string): Promise<readonly ActionRow[]> {
  return db.any(sql.prepared('ops_read_batch', actionRow)`
    select ${COLUMNS} from operator_action where batch_id = ${batchId}::uuid order by id`);
}

/** Closes the row once; returns it as it is then. */
export async function finishAction(db: Executor, id: string, after: StateNote): Promise<ActionRow> {
  const closed = await db.maybeOne(sql.prepared('ops_finish_action', actionRow)`
    update operator_action set state = 'DONE', state_after = ${JSON.stringify(after)}::json, finished_at = clock_timestamp()
    where id = ${id}::uuid and state = 'BEGUN' returning ${COLUMNS}`);
  return closed ?? db.one(sql.prepared('ops_read_action', actionRow)`select ${COLUMNS} from operator_action where id = ${id}::uuid`);
}

function findQuery(key: string) {
  return sql.prepared('ops_find_action', actionRow)`select ${COLUMNS} from operator_action where idempotency_key = ${key}::text`;
}

export function findAction(db: Executor, key: string): Promise<ActionRow | null> {
  return db.maybeOne(findQuery(key));
}

const OF_TARGET_MAX = 100;

/** What was done to one target, oldest first, at most 100. */
export function readActionsOf(db: Executor, target: string): Promise<readonly ActionRow[]> {
  return db.any(sql.prepared('ops_actions_of', actionRow)`
    select ${COLUMNS} from operator_action where target = ${target}::text order by id limit ${OF_TARGET_MAX}::int`);
}

/** Newest first. */
export function readActions(db: Executor, before: string | null, limit: number): Promise<readonly ActionRow[]> {
  return db.any(sql.prepared('ops_actions', actionRow)`
    select ${COLUMNS} from operator_action where ${before}::uuid is null or id < ${before}::uuid order by id desc limit ${limit}::int`);
}
