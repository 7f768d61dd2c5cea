/**
 * Owns: the closing of usage rows, and with it what a call cost. rule: R15 (a row is closed once, at the price that was frozen when it was
 * opened: the first outcome stays, a repeat changes nothing, and what was spent is added by the statement that closes)
 * `unknown` is not an outcome but the want of one: it has no cost, and what the call's own server still tells takes its place, once (ADR 15).
 * A cost is null where nobody knows it: the model has no price, or the provider was called and told no tokens.
 */
import { z } from 'zod';
import type { CallId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

/**
 * How a call ended. `ok`: the model finished. `provider_error`: the provider answered with an error, or sent one in its stream.
 * `truncated`: its stream ended before it was finished. `aborted`: the sandbox hung up. `sealed`: its attempt was stopped or lost its run.
 * `draining`: this server shut down. `paused`: nothing was sent, the breaker of the connection was open. `unknown`: a server died with the call
 * in flight: it was started, and nobody knows what came of it.
 */
export const CALL_OUTCOMES = [
  ...(['ok', 'provider_error', 'truncated', 'stalled', 'unreachable'] as const),
  ...(['aborted', 'sealed', 'draining', 'paused', 'unknown'] as const),
] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** Tokens of one call; null where the provider did not say. The four never overlap. */
export interface TokenUsage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cacheReadTokens: number | null;
  readonly cacheWriteTokens: number | null;
}

export interface CallClosing extends TokenUsage {
  readonly callId: CallId;
  readonly outcome: CallOutcome;
  /** The provider's status; null when it never answered. */
  readonly httpStatus: number | null;
}

const idRow = z.object({ id: z.string() });

/**
 * Closes the rows that are open or unknown. Returns how many these were. The commit waits for no flush: what a crash of the database loses is a
 * closing, and a row that stays open is closed by the sweep as `unknown`.
 */
export async function closeCalls(db: Executor, closings: readonly CallClosing[]): Promise<number> {
  const column = <T extends string | number | null>(pick: (closing: CallClosing) => T, type: string) => sql.array(closings.map(pick), type);
  const rows = await db.any(sql.prepared('gateway_close_calls', idRow)`
    with quick as materialized (select set_config('synchronous_commit', 'off', true)), closed as (
      update llm_usage_event e set state = 'CLOSED', closed_at = clock_timestamp(), outcome = c.outcome, http_status = c.http_status,
        input_tokens = c.input_tokens, output_tokens = c.output_tokens,
        cache_read_tokens = c.cache_read_tokens, cache_write_tokens = c.cache_write_tokens,
        cost = case e.price_kind when 'NO_CHARGE' then 0 when 'PRICED' then case
          when num_nonnulls(c.input_tokens, c.output_tokens, c.cache_read_tokens, c.cache_write_tokens) > 0 then (
            coalesce(c.input_tokens, 0) * e.input_price + coalesce(c.output_tokens, 0) * e.output_price
            + coalesce(c.cache_read_tokens, 0) * coalesce(e.cache_read_price, e.input_price)
            + coalesce(c.cache_write_tokens, 0) * coalesce(e.cache_write_price, e.input_price)) / 1000000
          when c.outcome in ('provider_error', 'unreachable', 'paused') then 0 end end
      from quick, unnest(${column((c) => c.callId, 'uuid')}, ${column((c) => c.outcome, 'text')}, ${column((c) => c.httpStatus, 'int2')},
      ${column((c) => c.inputTokens, 'int8')}, ${column((c) => c.outputTokens, 'int8')},
      ${column((c) => c.cacheReadTokens, 'int8')}, ${column((c) => c.cacheWriteTokens, 'int8')})
        as c(id, outcome, http_status, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)
      where e.id = c.id and (e.state = 'OPEN' or e.outcome = 'unknown')
      returning e.id, e.workspace_id, e.opened_at, e.cost
    ), spent as (
      insert into llm_spend as s (month, workspace_id, cost)
      select date_trunc('month', c.opened_at at time zone 'UTC')::date as month, c.workspace_id, sum(c.cost)
      from closed c where c.cost > 0 group by 1, 2 order by 1, 2
      on conflict (month, workspace_id) do update set cost = s.cost + excluded.cost
    )
    select id from closed`);
  return rows.length;
}

/** After how long an open row counts as unknown, milliseconds since the call was opened. */
export interface UnknownBounds {
  /** Whatever else is known: longer than the longest turn and its closing. */
  readonly openMs: number;
  /** When its attempt is over: longer than a server tries to write a closing. */
  readonly overMs: number;
}

/**
 * Closes at most `rowsMax` open rows of which nobody will tell the end: their server is dead, or they have been open for too long. Rows that are
 * being closed at this moment are skipped. Returns how many these were.
 */
export async function closeUnknownCalls(db: Executor, { openMs, overMs }: UnknownBounds, rowsMax: number): Promise<number> {
  const rows = await db.any(sql.prepared('gateway_close_unknown', idRow)`
    with lost as materialized (
      select e.id from llm_usage_event e
      where e.state = 'OPEN' and (
        e.opened_at < (select clock_timestamp()) - ${openMs}::int * interval '1 ms'
        or exists (select from sandbox_host h where h.id = e.host_id and h.ended_at is not null)
        or (e.opened_at < (select clock_timestamp()) - ${overMs}::int * interval '1 ms'
          and not exists (select from agent_run r where r.id = e.run_id and r.epoch = e.epoch and r.state = 'LEASED')))
      order by e.opened_at limit ${rowsMax}::int for update skip locked
    )
    update llm_usage_event e set state = 'CLOSED', outcome = 'unknown', closed_at = clock_timestamp(),
      cost = case when e.price_kind = 'NO_CHARGE' then 0 end
    from lost where e.id = lost.id
    returning e.id`);
  return rows.length;
}
