/**
 * Owns: the ReaperActor: takes back attempts whose lease has run out or whose sandbox is gone, and ends dead hosts.
 * A sandbox whose lease ran out is ended first: its runner does not answer, and the conversation's next attempt needs another.
 * It sweeps on a timer and at once when a runner has died. Servers do not coordinate: rows locked by another reaper are skipped.
 * rule: R9 (the statement decides between a second attempt and a failed turn)
 */
import { forgetPulls } from '../../db/ledger/placed.ts';
import { type ReapTexts, type TakenBack, takeBackLeases } from '../../db/ledger/reap.ts';
import { endDeadHosts, endSilentSandboxes } from '../../db/ledger/sandboxes.ts';
import { dropRetiredSlots } from '../../db/ledger/slots.ts';
import type { Database } from '../../db/pool.ts';
import type { HostId } from '../../src/kernel/ids.ts';
import type { Log } from '../../src/kernel/log.ts';
import type { Behaviour } from '../kernel/index.ts';

export type ReaperCommand = { readonly type: 'Sweep' };

export interface ReaperDeps {
  readonly db: Database;
  readonly log: Log;
  readonly texts: ReapTexts;
  readonly host: { readonly id: HostId; readonly predecessorOf: string | null };
  /** Clears the partial answer, publishes, wakes claims. */
  takenBack(turn: TakenBack): void;
}

const REAP_BATCH_MAX = 100;
/** Batches of one sweep; a longer backlog goes on at the next sweep. */
const BATCHES_PER_SWEEP_MAX = 20;
/** After PostgreSQL has started, hosts get this long to take their locks again before a free lock means anything. */
const HOST_BOUNDS = { settleMs: 10_000, suspectMs: 800 };

export class ReaperBehaviour implements Behaviour<null, ReaperCommand, number> {
  readonly #deps: ReaperDeps;

  constructor(deps: ReaperDeps) {
    this.#deps = deps;
  }

  async load(): Promise<null> {
    return null;
  }

  /** Replies with the number of attempts that were taken back. */
  async handle(): Promise<{ state: null; reply: number }> {
    const { db, log, host, texts } = this.#deps;
    const hosts = await endDeadHosts(db, host, HOST_BOUNDS);
    if (hosts > 0) {
      log.warn('dead sandbox hosts ended', { hosts });
      await forgetPulls(db);
    }
    const silent = await endSilentSandboxes(db, REAP_BATCH_MAX);
    for (const sandboxId of silent) log.warn('sandbox ended', { sandboxId, why: 'its lease ran out' });
    let count = 0;
    for (let batch = 0; batch < BATCHES_PER_SWEEP_MAX; batch++) {
      const taken = await takeBackLeases(db, REAP_BATCH_MAX, { ...texts, endsSandbox: true });
      for (const turn of taken) {
        log.info('attempt taken back', { turnId: turn.turnId, runId: turn.runId, epoch: turn.epoch, status: turn.status });
        this.#deps.takenBack(turn);
      }
      count += taken.length;
      if (taken.length < REAP_BATCH_MAX) break;
    }
    await dropRetiredSlots(db);
    return { state: null, reply: count };
  }
}
