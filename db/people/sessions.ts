/**
 * Owns: browser sessions. A session is named by the SHA-256 of its secret, in hexadecimal; the secret is only in the browser.
 * rule: R8 (ends are written and judged by the database clock)  rule: R12 (nobody signs in while they are erased)
 * rule: R16 (asked before each request, and with the membership before everything that a stream sends)
 */
import { z } from 'zod';
import type { AccountId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

/** What an account was recognised by, so that an open stream can ask again. Both null: nothing that ends. */
export interface SignInProof {
  /** A session of `web_session`. */
  readonly sessionId: string | null;
  /** A token, which ends at this time: milliseconds since the epoch, by the clock of the servers, as its issuer means it. */
  readonly untilMs: number | null;
}

export interface NewSession {
  readonly sessionId: string;
  readonly accountId: AccountId;
  /** The session that the browser had until now; it ends. */
  readonly replaces: string | null;
  readonly maxMs: number;
  readonly idleMs: number;
  /** With more, those that were used longest ago end. */
  readonly perAccountMax: number;
}

const accountRow = z.object({ account_id: z.string() });
const idRow = z.object({ id: z.string() });

/** False: the account is being erased. */
export async function startSession(db: Executor, s: NewSession): Promise<boolean> {
  const row = await db.maybeOne(sql.prepared('people_start_session', accountRow)`
    with person as materialized (
      select id from account where id = ${s.accountId} and erasure_requested_at is null for share
    ), replaced as (
      delete from web_session where id_hash = decode(${s.replaces}::text, 'hex')
    ), crowded as (
      delete from web_session where id_hash in (
        select o.id_hash from web_session o
        where o.account_id = (select id from person) and o.id_hash is distinct from decode(${s.replaces}::text, 'hex')
        order by o.last_seen_at desc, o.id_hash offset ${s.perAccountMax - 1}::int for update skip locked)
    )
    insert into web_session (id_hash, account_id, ends_at, last_moment_at)
    select decode(${s.sessionId}, 'hex'), p.id,
      clock_timestamp() + least(${s.idleMs}::float8, ${s.maxMs}::float8) * interval '1 ms', clock_timestamp() + ${s.maxMs}::float8 * interval '1 ms'
    from person p returning account_id`);
  return row !== null;
}

/**
 * The account of a live session; null when there is none. The use is written down, but not each one: a session that was used within
 * `touchAfterMs` is only read.
 */
export async function touchSession(
  db: Executor,
  s: { readonly sessionId: string; readonly idleMs: number; readonly touchAfterMs: number },
): Promise<AccountId | null> {
  const row = await db.maybeOne(sql.prepared('people_touch_session', accountRow)`
    with live as materialized (
      select id_hash, account_id from web_session where id_hash = decode(${s.sessionId}, 'hex') and ends_at > (select clock_timestamp())
    ), used as (
      update web_session w
      set last_seen_at = clock_timestamp(), ends_at = least(w.last_moment_at, clock_timestamp() + ${s.idleMs}::float8 * interval '1 ms')
      from live l
      where w.id_hash = l.id_hash and w.last_seen_at < (select clock_timestamp()) - ${s.touchAfterMs}::float8 * interval '1 ms'
    )
    select account_id from live`);
  return row && (row.account_id as AccountId);
}

/** Of these sessions, those that live now. */
export async function liveSessions(db: Executor, sessionIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (sessionIds.length === 0) return new Set();
  const rows = await db.any(sql.prepared('people_live_sessions', idRow)`
    select asked.id from unnest(${sql.array([...sessionIds], 'text')}) as asked(id)
    join web_session w on w.id_hash = decode(asked.id, 'hex')
    where w.ends_at > (select clock_timestamp())`);
  return new Set(rows.map(({ id }) => id));
}

/** Ends it, if it is there. */
export async function endSession(db: Executor, sessionId: string): Promise<void> {
  await db.any(sql.type(accountRow)`delete from web_session where id_hash = decode(${sessionId}, 'hex') returning account_id`);
}

/** Deletes at most `max` sessions and `max` attempts that have ended; the number of those that it deleted. */
export async function sweepSignIns(db: Executor, max: number): Promise<number> {
  const { count } = await db.one(sql.type(z.object({ count: z.number() }))`
    with sessions as (
      delete from web_session where id_hash in (
        select id_hash from web_session where ends_at <= (select clock_timestamp()) order by ends_at limit ${max}::int for update skip locked)
      returning 1
    ), attempts as (
      delete from sign_in_attempt where state_hash in (
        select state_hash from sign_in_attempt where ends_at <= (select clock_timestamp())
        order by created_at limit ${max}::int for update skip locked)
      returning 1
    )
    select (select count(*) from sessions) + (select count(*) from attempts) as count`);
  return count;
}
