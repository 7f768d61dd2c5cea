/**
 * Owns: the states of an outbox action while servers work on it. rule: R14
 * An action is SENDING, committed, before its request leaves; who holds it writes what it learns under the name of its attempt (lease_id).
 * A held action whose lease ran out is UNCERTAIN: nobody knows whether its request left. The steps are checked by the trigger
 * `outbox_action_step`. rule: R8 (leases and times are the database's)
 * Does not own: how Slack is called (src/slack), what an operator decides (outbox-admin.ts).
 */
import { z } from 'zod';
import type { WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

/** A conversation of a team: actions in it go one after the other. */
export interface ChannelKey {
  readonly teamId: string;
  readonly channelId: string;
}

export interface OutboxTimes {
  /** How long an attempt has; longer than a request may take. */
  readonly leaseMs: number;
  /** Between two posts to one channel. */
  readonly paceMs: number;
  /** After an unknown outcome, before the history is read: a request that is still on its way must have arrived by then. */
  readonly settleMs: number;
  /** Between two readings of a team's history. */
  readonly readEveryMs: number;
  readonly readsMax: number;
}

/** What there is to say, read from the ledger when it is to be said: what was erased meanwhile is not said. */
export type Saying =
  | {
      readonly kind: 'turn';
      readonly status: 'DONE' | 'FAILED' | 'STOPPED';
      readonly answers: readonly string[];
      readonly error: string | null;
    }
  | { readonly kind: 'notice'; readonly notice: string; readonly userId: string; readonly teamId: string }
  /** A weekly digest is in the app. */
  | { readonly kind: 'digest' }
  /** Its words are gone, or its person may not be shown them any more. */
  | { readonly kind: 'nothing'; readonly why: 'erased' | 'no_member' };

/** One attempt. */
export interface LeasedAction extends ChannelKey {
  readonly id: string;
  readonly leaseId: string;
  readonly workspaceId: WorkspaceId;
  readonly connectionId: string;
  readonly tokenSealed: Buffer;
  /** null: a message of its own. */
  readonly threadTs: string | null;
  readonly attempts: number;
  readonly reads: number;
  /** When its request was allowed to leave, by the database's clock, in seconds since the epoch. */
  readonly startedAtS: number;
  readonly saying: Saying;
}

const bytes = z.custom<Buffer>((value) => Buffer.isBuffer(value));
const leasedRow = z.object({
  id: z.string(),
  lease_id: z.string(),
  workspace_id: z.string(),
  connection_id: z.string(),
  token: bytes,
  team_id: z.string(),
  channel_id: z.string(),
  thread_ts: z.string().nullable(),
  attempts: z.number(),
  reads: z.number(),
  started_s: z.number(),
  digest: z.boolean(),
  notice: z.string().nullable(),
  user_id: z.string().nullable(),
  status: z.enum(['DONE', 'FAILED', 'STOPPED']).nullable(),
  error_text: z.string().nullable(),
  answers: z.array(z.string()),
  asked: z.boolean(),
  shown: z.boolean(),
});

/** The columns of `leasedRow` from `a` (actions) and `k` (connections). */
const LEASED = sql.fragment`
  a.id, a.lease_id, a.workspace_id, k.id as connection_id, k.bot_token_sealed as token, a.team_id, a.channel_id, a.thread_ts, a.attempts, a.reads,
  extract(epoch from a.started_at)::float8 as started_s, a.digest_id is not null as digest, a.notice, a.user_id, t.status, t.error_text,
  coalesce((select json_agg(e.text order by e.seq) from mentor_entry e
    where e.turn_id = t.id and e.kind = 'ANSWER' and e.text is not null), '[]') as answers,
  coalesce((select q.erased_at is null from mentor_entry q where q.id = coalesce(t.question_entry_id, a.digest_id)), true) as asked,
  exists (select from workspace_member m join account p on p.id = m.account_id
    where m.workspace_id = a.workspace_id and m.account_id = coalesce(t.account_id, (
      select c.account_id from mentor_entry d join mentor_conversation c on c.id = d.conversation_id where d.id = a.digest_id))
      and m.active and m.visible and p.erasure_requested_at is null) as shown`;

function toLeased(row: z.infer<typeof leasedRow>): LeasedAction {
  return {
    ...{ id: row.id, leaseId: row.lease_id, workspaceId: row.workspace_id as WorkspaceId, connectionId: row.connection_id },
    ...{ tokenSealed: row.token, teamId: row.team_id, channelId: row.channel_id, threadTs: row.thread_ts },
    ...{ attempts: row.attempts, reads: row.reads, startedAtS: row.started_s, saying: toSaying(row) },
  };
}

/** rule: R16 */
function toSaying({ digest, notice, user_id, team_id, status, answers, error_text, asked, shown }: z.infer<typeof leasedRow>): Saying {
  if (notice !== null) return { kind: 'notice', notice, userId: user_id ?? '', teamId: team_id };
  // A person may delete the question, the answer or the digest while it waits here.
  const unsayable = (status === null && !digest) || (status === 'DONE' && answers.length === 0);
  if (!asked || unsayable) return { kind: 'nothing', why: 'erased' };
  if (!shown) return { kind: 'nothing', why: 'no_member' };
  return status === null ? { kind: 'digest' } : { kind: 'turn', status, answers, error: error_text };
}

/**
 * Leases the first action of a channel, when its time has come: what is before it is settled, the channel's pace and the team's pause are kept.
 * An uncertain action holds up those behind it while it is still being read back, and no longer.
 */
export async function leaseNext(
  db: Executor,
  { teamId, channelId, leaseId }: ChannelKey & { readonly leaseId: string },
  times: OutboxTimes,
): Promise<LeasedAction | null> {
  const row = await db.maybeOne(sql.prepared('outbox_lease', leasedRow)`
    with head as materialized (
      select a.id from outbox_action a
      where a.team_id = ${teamId} and a.channel_id = ${channelId} and a.state in ('PENDING', 'RETRY') and a.due_at <= clock_timestamp()
        and exists (select from slack_connection k where k.team_id = a.team_id and k.workspace_id = a.workspace_id and k.state = 'ACTIVE'
          and k.post_after <= clock_timestamp())
        and not exists (select from outbox_action e where e.team_id = a.team_id and e.channel_id = a.channel_id and e.seq < a.seq
          and (e.state in ('PENDING', 'RETRY', 'SENDING') or (e.state = 'UNCERTAIN' and e.due_at is not null)))
        and not exists (select from outbox_action p where p.team_id = a.team_id and p.channel_id = a.channel_id
          and p.started_at > clock_timestamp() - ${times.paceMs}::int * interval '1 ms')
      order by a.seq limit 1 for update of a skip locked
    ), a as (
      update outbox_action o set state = 'SENDING', moved_by = 'server', attempts = o.attempts + 1, reads = 0, reason = null,
        lease_id = ${leaseId}::uuid, lease_until = clock_timestamp() + ${times.leaseMs}::int * interval '1 ms', started_at = clock_timestamp(), due_at = null
      from head where o.id = head.id returning o.*
    )
    select ${LEASED} from a join slack_connection k on k.team_id = a.team_id and k.workspace_id = a.workspace_id and k.state = 'ACTIVE'
      left join mentor_turn t on t.id = a.turn_id`);
  return row && toLeased(row);
}

/** What became of an attempt. */
export type Settlement =
  | { readonly state: 'SENT'; readonly messageTs: string }
  | { readonly state: 'RETRY'; readonly afterMs: number; readonly reason: string }
  /** `readAgain` false: the history says nothing, and will not; an operator decides. */
  | { readonly state: 'UNCERTAIN'; readonly reason: string; readonly readAgain: boolean }
  | { readonly state: 'PARKED' | 'DEAD'; readonly reason: string };

const idRow = z.object({ id: z.string() });

/**
 * Writes what was learnt about this attempt. It may be late: while no other attempt was begun, what is known of this one still counts.
 * False: another attempt, or an operator, has gone on.
 */
export async function settleAction(
  db: Executor,
  { to, ...key }: { readonly id: string; readonly leaseId: string; readonly to: Settlement },
  times: OutboxTimes,
): Promise<boolean> {
  const afterMs = to.state === 'RETRY' ? to.afterMs : to.state === 'UNCERTAIN' && to.readAgain ? times.settleMs : null;
  const row = await db.maybeOne(sql.prepared('outbox_settle', idRow)`
    update outbox_action set state = ${to.state}::text, moved_by = 'server', reason = ${'reason' in to ? to.reason : null}::text,
      message_ts = ${to.state === 'SENT' ? to.messageTs : null}::text, lease_until = null,
      due_at = clock_timestamp() + ${afterMs}::float8 * interval '1 ms',
      ended_at = case when ${to.state}::text in ('SENT', 'DEAD') then clock_timestamp() end
    where id = ${key.id}::uuid and lease_id = ${key.leaseId}::uuid and state in ('SENDING', 'UNCERTAIN')
    returning id`);
  return row !== null;
}

/** Slack has asked this team's app to wait. */
export async function pauseTeam(
  db: Executor,
  { connectionId, what, afterMs }: { readonly connectionId: string; readonly what: 'post' | 'read'; readonly afterMs: number },
): Promise<void> {
  await db.any(sql.prepared('outbox_pause', idRow)`
    update slack_connection set
      post_after = case when ${what}::text = 'post' then greatest(post_after, clock_timestamp() + ${afterMs}::float8 * interval '1 ms') else post_after end,
      read_after = case when ${what}::text = 'read' then greatest(read_after, clock_timestamp() + ${afterMs}::float8 * interval '1 ms') else read_after end
    where id = ${connectionId}::uuid returning id`);
}

/** Attempts whose server is gone: their outcome is unknown. Returns how many. */
export async function expireLeases(db: Executor, batchMax: number, times: OutboxTimes): Promise<number> {
  const rows = await db.any(sql.prepared('outbox_expire', idRow)`
    with gone as materialized (
      select id from outbox_action where state = 'SENDING' and lease_until <= (select clock_timestamp()) order by id limit ${batchMax}::int
      for update skip locked
    )
    update outbox_action o set state = 'UNCERTAIN', moved_by = 'server', reason = 'lease_expired', lease_until = null,
      due_at = clock_timestamp() + ${times.settleMs}::int * interval '1 ms'
    from gone where o.id = gone.id returning o.id`);
  return rows.length;
}

/** Actions of teams that are not connected wait for an operator, or for the next connection. Returns how many. */
export async function parkUnconnected(db: Executor, batchMax: number): Promise<number> {
  const rows = await db.any(sql.prepared('outbox_park', idRow)`
    with lost as materialized (
      select a.id from outbox_action a where a.state in ('PENDING', 'RETRY')
        and not exists (select from slack_connection k where k.team_id = a.team_id and k.workspace_id = a.workspace_id and k.state = 'ACTIVE')
      order by a.id limit ${batchMax}::int for update of a skip locked
    )
    update outbox_action o set state = 'PARKED', moved_by = 'server', reason = 'not_connected', due_at = null from lost where o.id = lost.id returning o.id`);
  return rows.length;
}

const channelRow = z.object({ team_id: z.string(), channel_id: z.string() });

const openRow = z.object({ open: z.boolean() });

/** False on most looks of most installations. */
export async function hasOpenActions(db: Executor): Promise<boolean> {
  const { open } = await db.one(sql.prepared('outbox_has_open', openRow)`
    select exists (select from outbox_action where state in ('PENDING', 'RETRY', 'SENDING', 'UNCERTAIN')) as open`);
  return open;
}

/** Channels with something to say now; a team that is to wait, or a channel that is held up, takes nobody's place. */
export async function dueChannels(db: Executor, channelsMax: number): Promise<readonly ChannelKey[]> {
  const rows = await db.any(sql.prepared('outbox_due_channels', channelRow)`
    select a.team_id, a.channel_id from outbox_action a
    where a.state in ('PENDING', 'RETRY') and a.due_at <= (select clock_timestamp())
      and exists (select from slack_connection k where k.team_id = a.team_id and k.workspace_id = a.workspace_id and k.state = 'ACTIVE'
        and k.post_after <= (select clock_timestamp()))
      and not exists (select from outbox_action e where e.team_id = a.team_id and e.channel_id = a.channel_id and e.seq < a.seq
        and (e.state in ('PENDING', 'RETRY', 'SENDING') or (e.state = 'UNCERTAIN' and e.due_at is not null)))
    group by a.team_id, a.channel_id order by min(a.due_at) limit ${channelsMax}::int`);
  return rows.map(({ team_id: teamId, channel_id: channelId }) => ({ teamId, channelId }));
}

/**
 * One uncertain action whose history is to be read now; the team's budget of readings is spent with it. The connection is locked before the
 * action (lock order).
 */
export async function takeReading(db: Executor, times: OutboxTimes): Promise<LeasedAction | null> {
  const row = await db.maybeOne(sql.prepared('outbox_reading', leasedRow)`
    with budget as materialized (
      select k.id, k.team_id, k.workspace_id from slack_connection k
      where k.state = 'ACTIVE' and k.read_after <= clock_timestamp() and exists (
        select from outbox_action a where a.state = 'UNCERTAIN' and a.due_at <= clock_timestamp() and a.team_id = k.team_id and a.workspace_id = k.workspace_id)
      order by k.read_after, k.id limit 1 for update of k skip locked
    ), due as materialized (
      select a.id, budget.id as connection_id from budget join outbox_action a on a.team_id = budget.team_id and a.workspace_id = budget.workspace_id
      where a.state = 'UNCERTAIN' and a.due_at <= clock_timestamp() order by a.due_at limit 1 for update of a skip locked
    ), spent as (
      update slack_connection k set read_after = clock_timestamp() + ${times.readEveryMs}::int * interval '1 ms' from due where k.id = due.connection_id
    ), a as (
      update outbox_action o set reads = o.reads + 1, due_at = clock_timestamp() + ${times.readEveryMs}::int * interval '1 ms'
      from due where o.id = due.id returning o.*
    )
    select ${LEASED} from a join slack_connection k on k.team_id = a.team_id and k.workspace_id = a.workspace_id and k.state = 'ACTIVE'
      left join mentor_turn t on t.id = a.turn_id`);
  return row && toLeased(row);
}

const sizeRow = z.object({ pending: z.number(), uncertain: z.number(), oldest_s: z.number() });

/** For metrics: what waits, what is uncertain, and the age of the oldest that is neither sent nor given up. */
export async function outboxSize(
  db: Executor,
): Promise<{ readonly pending: number; readonly uncertain: number; readonly oldestAgeS: number }> {
  const row = await db.one(sql.prepared('outbox_size', sizeRow)`
    select count(*) filter (where state <> 'UNCERTAIN') as pending, count(*) filter (where state = 'UNCERTAIN') as uncertain,
      coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as oldest_s
    from outbox_action where state in ('PENDING', 'RETRY', 'SENDING', 'UNCERTAIN')`);
  return { pending: row.pending, uncertain: row.uncertain, oldestAgeS: row.oldest_s };
}
