/**
 * Owns: what Slack has delivered: stored once for each event before it is acknowledged, done in order for each channel, by one server at a time.
 * Its words go when it is done. Doing an event twice changes nothing (the question's requestId is its message), so a lease is enough.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

export interface DeliveredEvent {
  readonly teamId: string;
  readonly eventId: string;
  readonly channelId: string;
  readonly deletedTs: string | null;
  /** Of a message that was written; null for everything else. */
  readonly messageTs: string | null;
  /** What src/slack made of it, as JSON text. */
  readonly payload: string;
}

const storedRow = z.object({ event_id: z.string() });

/** False: it was delivered before, or its team is not connected: then nothing of it is kept. */
export async function storeEvent(db: Executor, event: DeliveredEvent): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('slack_store_event', storedRow)`
    insert into slack_event (team_id, event_id, channel_id, deleted_ts, message_ts, payload)
    select ${event.teamId}::text, ${event.eventId}::text, ${event.channelId}::text, ${event.deletedTs}::text, ${event.messageTs}::text,
      ${event.payload}::text::json
    from slack_connection k where k.team_id = ${event.teamId}::text and k.state = 'ACTIVE'
    on conflict on constraint slack_event_pk do nothing returning event_id`);
  return row !== null;
}

export interface TakenEvent {
  readonly teamId: string;
  readonly eventId: string;
  readonly payload: string;
  readonly tries: number;
}

const takenRow = z.object({ team_id: z.string(), event_id: z.string(), payload: z.string(), tries: z.number() });

/** The oldest event of a channel in which none is being done. */
export async function takeEvent(db: Executor, leaseMs: number): Promise<TakenEvent | null> {
  const row = await db.maybeOne(sql.prepared('slack_take_event', takenRow)`
    with head as materialized (
      select e.team_id, e.event_id from slack_event e
      where e.done_at is null and (e.lease_until is null or e.lease_until <= clock_timestamp())
        and not exists (select from slack_event b where b.team_id = e.team_id and b.channel_id = e.channel_id and b.seq < e.seq and b.done_at is null)
      order by e.seq limit 1 for update of e skip locked
    )
    update slack_event e set lease_until = clock_timestamp() + ${leaseMs}::int * interval '1 ms', tries = e.tries + 1
    from head where e.team_id = head.team_id and e.event_id = head.event_id
    returning e.team_id, e.event_id, e.payload::text as payload, e.tries`);
  return row && { teamId: row.team_id, eventId: row.event_id, payload: row.payload, tries: row.tries };
}

export async function finishEvent(
  db: Executor,
  { teamId, eventId }: Pick<TakenEvent, 'teamId' | 'eventId'>,
  outcome: string,
): Promise<void> {
  await db.any(sql.prepared('slack_finish_event', storedRow)`
    update slack_event set payload = null, outcome = ${outcome}, done_at = clock_timestamp(), lease_until = null
    where team_id = ${teamId} and event_id = ${eventId} and done_at is null returning event_id`);
}

/** It is tried again after a pause. */
export async function postponeEvent(
  db: Executor,
  { teamId, eventId }: Pick<TakenEvent, 'teamId' | 'eventId'>,
  afterMs: number,
): Promise<void> {
  await db.any(sql.prepared('slack_postpone_event', storedRow)`
    update slack_event set lease_until = clock_timestamp() + ${afterMs}::int * interval '1 ms'
    where team_id = ${teamId} and event_id = ${eventId} and done_at is null returning event_id`);
}

/** True when this message was deleted before its own event was done: deliveries may overtake each other. */
export async function wasDeleted(db: Executor, at: { teamId: string; channelId: string; messageTs: string }): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('slack_was_deleted', storedRow)`
    select event_id from slack_event where team_id = ${at.teamId} and channel_id = ${at.channelId} and deleted_ts = ${at.messageTs} limit 1`);
  return row !== null;
}

/** True when this message was done, whatever became of it. */
export async function wasDone(db: Executor, at: { teamId: string; channelId: string; messageTs: string }): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('slack_was_done', storedRow)`
    select event_id from slack_event where team_id = ${at.teamId} and channel_id = ${at.channelId} and message_ts = ${at.messageTs}
      and done_at is not null limit 1`);
  return row !== null;
}

/** True when something of this team was delivered lately (its rows are pruned). */
export async function hasDelivered(db: Executor, teamId: string): Promise<boolean> {
  const row = await db.maybeOne(sql.type(storedRow)`select event_id from slack_event where team_id = ${teamId} limit 1`);
  return row !== null;
}

/** Events that Slack cannot deliver again any more. */
export async function pruneEvents(db: Executor, keepMs: number): Promise<void> {
  await db.any(sql.prepared('slack_prune_events', storedRow)`
    delete from slack_event where done_at is not null and created_at < (select clock_timestamp()) - ${keepMs}::float8 * interval '1 ms'
    returning event_id`);
}
