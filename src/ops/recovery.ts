/**
 * Owns: the report of what a starting server found running and what became of it, and its check against the rows: the counts must add up.
 * A difference fails readiness and says what differs; it is looked at again at each check, because another server may put it right.
 */
import { type Books, type Fates, type FoundAttempt, readBooks, readFates, readLeasedAttempts } from '../../db/ops/recovery.ts';
import type { Executor } from '../../db/pool.ts';
import type { Log } from '../kernel/log.ts';
import type { Part } from './parts.ts';

export interface RecoveryReport extends Omit<Fates, 'orphans'> {
  /** Attempts that were leased when this server started. */
  readonly found: number;
  /** Taken back by this server. */
  readonly takenBack: number;
  readonly slotsFree: number;
  /** Sentences; empty when everything adds up. */
  readonly differences: readonly string[];
}

/** Each pass takes back a bounded batch; a backlog larger than this is left to the sweeps, and is a difference until then. */
const PASSES_MAX = 20;

/** Takes back what dead servers held, and checks the books. `reap` returns how many attempts it took back. */
export async function recover(deps: { readonly db: Executor; readonly log: Log; reap(): Promise<number> }): Promise<Recovery> {
  const { db, log, reap } = deps;
  const found = await readLeasedAttempts(db);
  let takenBack = 0;
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    const taken = await reap();
    takenBack += taken;
    if (taken === 0) break;
  }
  const recovery = new Recovery(db, found, takenBack);
  const { differences, ...counts } = await recovery.check();
  if (differences.length > 0) log.error('recovery does not add up', { ...counts, differences: differences.join(' ') });
  else log.info('recovered', { ...counts });
  return recovery;
}

export class Recovery {
  readonly #db: Executor;
  readonly #found: readonly FoundAttempt[];
  readonly #takenBack: number;
  #settled: RecoveryReport | undefined;

  constructor(db: Executor, found: readonly FoundAttempt[], takenBack: number) {
    this.#db = db;
    this.#found = found;
    this.#takenBack = takenBack;
  }

  /** The report as it was when everything added up first; until then it is read again. */
  async check(): Promise<RecoveryReport> {
    if (this.#settled) return this.#settled;
    const [fates, books] = await Promise.all([readFates(this.#db, this.#found), readBooks(this.#db)]);
    const { orphans: _, ...counts } = fates;
    const differences = differencesOf({ found: this.#found.length, fates, books });
    const report = { found: this.#found.length, takenBack: this.#takenBack, ...counts, slotsFree: books.free, differences };
    if (differences.length === 0) this.#settled = report;
    return report;
  }

  part(): Part {
    return {
      ...{ name: 'recovery', required: true },
      check: async () => {
        const report = await this.check();
        return { ok: report.differences.length === 0, why: [...report.differences, sentence(report)].join(' ') };
      },
    };
  }
}

function sentence({ found, takenBack, requeued, failed, stopped, done, running, slotsFree }: RecoveryReport): string {
  const fates = `${requeued} requeued, ${failed} failed, ${stopped} stopped, ${done} ended by themselves, ${running} still run`;
  return `At start ${found} attempts were running: ${fates}. This server took ${takenBack} back; ${slotsFree} slots were free.`;
}

/** What does not add up. Pure. */
export function differencesOf(facts: { readonly found: number; readonly fates: Fates; readonly books: Books }): readonly string[] {
  const { found, fates, books } = facts;
  const { running, orphans, requeued, failed, stopped, done } = fates;
  const told = running + orphans + requeued + failed + stopped + done;
  const checks: readonly (readonly [boolean, string])[] = [
    [told === found, `Of ${found} attempts that were running, the rows tell of ${told}.`],
    [orphans === 0, `${orphans} attempts are still held by sandboxes that have ended.`],
    [books.slots === books.held + books.free, `${books.slots} slots are ${books.held} held and ${books.free} free.`],
    [books.held === books.leased, `${books.held} slots are held by ${books.leased} leased runs.`],
    [
      books.leased === books.running + books.stopping,
      `${books.leased} leased runs are ${books.running} running and ${books.stopping} stopping turns.`,
    ],
  ];
  return checks.flatMap(([holds, difference]) => (holds ? [] : [difference]));
}
