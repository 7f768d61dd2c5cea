/**
 * Owns: the weekly sweep that erases what tools copied before it is kept for longer than Slack's retention allows. It takes what would reach
 * the limit within two weeks, so that a week in which no server ran, or one died in the sweep, keeps the limit. It runs once a week since each
 * erasure costs a long conversation its summary (seed, "Expiry and the weekly digest").
 */
import type { Actors } from '../../actors/index.ts';
import type { Database } from '../../db/pool.ts';
import { beginWeek, eraseOldCopies } from '../../db/slack/retention.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Log } from '../kernel/log.ts';

export interface RetentionDeps {
  readonly db: Database;
  readonly log: Log;
  readonly actors: Pick<Actors, 'entriesErased'>;
  /** How long a copy may be kept, milliseconds; more than RETENTION_MARGIN_MS. */
  readonly retentionMs: number;
}

export const RETENTION_MARGIN_MS = 14 * 86_400_000;
const SWEEP = 'slack retention';

export class Retention {
  readonly #deps: RetentionDeps;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  /** Sweeps when no server has in this week. Resolves when it is done. */
  async run(): Promise<void> {
    const { db, log, actors, retentionMs } = this.#deps;
    if (!(await beginWeek(db, SWEEP))) return;
    let conversations = 0;
    for (;;) {
      const changed = await eraseOldCopies(db, { olderThanMs: retentionMs - RETENTION_MARGIN_MS, graceMs: LIMITS.stopGraceMs });
      if (changed === null) break;
      actors.entriesErased(changed);
      conversations += changed.length;
    }
    log.info('slack retention kept', { conversations });
  }
}
