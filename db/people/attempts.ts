/**
 * Owns: sign-ins that have begun and not ended. A row holds hashes only: whoever reads the table can finish no sign-in.
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

export interface NewAttempt {
  /** SHA-256 of the state that the issuer sends back, in hexadecimal. */
  readonly stateHash: string;
  /** SHA-256 of the secret of the browser in which it began. */
  readonly browserHash: string;
  /** A path of this site. */
  readonly returnPath: string;
  readonly ttlMs: number;
  /** With more of one browser, and with more of all browsers, the oldest go. */
  readonly perBrowserMax: number;
  readonly totalMax: number;
}

/** Rows over the bound that one sign-in takes away: more than the one that it adds, so that the table shrinks again. */
const TRIMMED_AT_ONCE = 100;

const pathRow = z.object({ return_path: z.string() });

export async function beginAttempt(db: Executor, a: NewAttempt): Promise<void> {
  await db.one(sql.prepared('people_begin_attempt', pathRow)`
    with own as (
      delete from sign_in_attempt where state_hash in (
        select state_hash from sign_in_attempt where browser_hash = decode(${a.browserHash}, 'hex')
        order by created_at desc offset ${a.perBrowserMax - 1}::int for update skip locked)
    ), oldest as (
      delete from sign_in_attempt where state_hash in (
        select state_hash from sign_in_attempt
        order by created_at desc offset ${a.totalMax - 1}::int limit ${TRIMMED_AT_ONCE}::int for update skip locked)
    )
    insert into sign_in_attempt (state_hash, browser_hash, return_path, ends_at)
    values (decode(${a.stateHash}, 'hex'), decode(${a.browserHash}, 'hex'), ${a.returnPath}, clock_timestamp() + ${a.ttlMs}::float8 * interval '1 ms')
    returning return_path`);
}

/** Takes the attempt away, once; its return path. null: it has ended, or began in another browser, which may still finish it. */
export async function takeAttempt(
  db: Executor,
  a: { readonly stateHash: string; readonly browserHash: string },
): Promise<{ readonly returnPath: string } | null> {
  const row = await db.maybeOne(sql.prepared('people_take_attempt', pathRow)`
    delete from sign_in_attempt
    where state_hash = decode(${a.stateHash}, 'hex') and browser_hash = decode(${a.browserHash}, 'hex') and ends_at > (select clock_timestamp())
    returning return_path`);
  return row && { returnPath: row.return_path };
}
