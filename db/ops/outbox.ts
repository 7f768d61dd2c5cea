/**
 * Owns: the outbox as operators look at it: per channel in numbers, and page by page. No words: an action refers to a turn.
 * Does not own: the states (db/slack/outbox.ts), an operator's decision (db/slack/outbox-admin.ts).
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

const channelRow = z.object({
  workspace: z.string(),
  team: z.string(),
  channel: z.string(),
  pending: z.number(),
  uncertain: z.number(),
  parked: z.number(),
  dead: z.number(),
  /** Of what is not said yet, milliseconds. */
  oldest_ms: z.number().nullable(),
});
export type OutboxChannel = z.infer<typeof channelRow>;

const CHANNELS_MAX = 200;

/** Channels with something that is not sent, those that wait longest first; at most 200. */
export function readOutboxChannels(db: Executor): Promise<readonly OutboxChannel[]> {
  return db.any(sql.prepared('ops_outbox_channels', channelRow)`
    select w.slug as workspace, a.team_id as team, a.channel_id as channel,
      count(*) filter (where a.state in ('PENDING', 'RETRY', 'SENDING'))::int as pending,
      count(*) filter (where a.state = 'UNCERTAIN')::int as uncertain, count(*) filter (where a.state = 'PARKED')::int as parked,
      count(*) filter (where a.state = 'DEAD')::int as dead,
      (extract(epoch from (select clock_timestamp()) - min(a.created_at) filter (where a.state in ('PENDING', 'RETRY', 'SENDING', 'UNCERTAIN'))) * 1000)::bigint
        as oldest_ms
    from outbox_action a join workspace w on w.id = a.workspace_id where a.state <> 'SENT'
    group by 1, 2, 3 order by oldest_ms desc nulls last, 1, 2, 3 limit ${CHANNELS_MAX}::int`);
}

const actionRow = z.object({
  seq: z.number(),
  id: z.string(),
  state: z.string(),
  reason: z.string().nullable(),
  workspace: z.string(),
  team: z.string(),
  channel: z.string(),
  turn: z.string().nullable(),
  attempts: z.number(),
  created_at: z.string(),
  due_at: z.string().nullable(),
});
export type OutboxRow = z.infer<typeof actionRow>;

export interface OutboxChoice {
  /** null: all that is not sent. */
  readonly state: string | null;
  readonly workspace: string | null;
  readonly channel: string | null;
  readonly conversation: string | null;
  /** The `seq` of the last row before this page. */
  readonly after: number | null;
  readonly limit: number;
}

const COLUMNS = sql.fragment`a.seq, a.id, a.state, a.reason, w.slug as workspace, a.team_id as team, a.channel_id as channel, a.turn_id as turn,
  a.attempts, a.created_at, a.due_at`;

/** Oldest first. */
export function readOutboxPage(db: Executor, c: OutboxChoice): Promise<readonly OutboxRow[]> {
  return db.any(sql.prepared('ops_outbox_page', actionRow)`
    select ${COLUMNS} from outbox_action a join workspace w on w.id = a.workspace_id left join mentor_turn t on t.id = a.turn_id
    where case when ${c.state}::text is null then a.state <> 'SENT' or ${c.conversation}::uuid is not null else a.state = ${c.state}::text end
      and (${c.workspace}::text is null or w.slug = ${c.workspace}::text) and (${c.channel}::text is null or a.channel_id = ${c.channel}::text)
      and (${c.conversation}::uuid is null or t.conversation_id = ${c.conversation}::uuid) and a.seq > coalesce(${c.after}::bigint, 0)
    order by a.seq limit ${c.limit}::int`);
}

/** null: there is no such action. */
export function findOutboxAction(db: Executor, id: string): Promise<OutboxRow | null> {
  return db.maybeOne(sql.prepared('ops_outbox_find', actionRow)`
    select ${COLUMNS} from outbox_action a join workspace w on w.id = a.workspace_id where a.id = ${id}::uuid`);
}
