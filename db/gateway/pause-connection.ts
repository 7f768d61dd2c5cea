/**
 * Owns: the pause of a connection, for all servers. rule: R8 (it ends by the database clock)
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';

/** No turn is admitted for `pauseMs` from now; null ends a pause. Not a change of what a provider is built from: `updated_at` stays. */
export async function pauseConnection(db: Executor, id: string, pauseMs: number | null): Promise<void> {
  await db.any(sql.prepared('gateway_pause_connection', z.object({ id: z.string() }))`
    update llm_connection c set paused_until = clock_timestamp() + ${pauseMs}::int * interval '1 ms'
    where id = ${id}::uuid and (${pauseMs}::int is not null or paused_until is not null)
    returning id`);
}
