/**
 * Owns: the auditor: every commit of a database is replayed from its own change log and asked about R1 to R9, R14 and R15. Nothing in the database
 * has to cooperate: a statement, a trigger and a server may all be wrong, and what they committed is still found.
 */
import pg from 'pg';
import { ChangeLog } from './change-log.ts';
import { LedgerReplay, type Limits, REPLAYED_TABLES } from './ledger-replay.ts';
import { LEDGER_RULES } from './ledger-rules.ts';
import { skipLoudly } from './skip.ts';

const SERVER_LIMITS: Limits = { capacity: 4, leaseTtlMs: 60_000, deadlineMs: 900_000 };

export class LedgerAudit {
  /** Commits that touched the ledger. */
  commits = 0;
  /** What was wrong at some commit, oldest first: the rule, where in the log, and what. */
  readonly #violations: string[] = [];
  readonly #steps = new Map<string, string[]>();
  readonly #replay = new LedgerReplay();
  readonly #log: ChangeLog;
  readonly #limits: Limits;

  private constructor(log: ChangeLog, limits: Limits) {
    this.#log = log;
    this.#limits = limits;
  }

  /** Watches from now on; there must be no turn yet. null: this PostgreSQL keeps no logical log. */
  static async open(url: string, limits: Partial<Limits> = {}): Promise<LedgerAudit | null> {
    const log = await ChangeLog.open(url, REPLAYED_TABLES);
    if (log === null) return null;
    await refuseTurns(url, log);
    return new LedgerAudit(log, { ...SERVER_LIMITS, ...limits });
  }

  /** Reads what has been committed meanwhile; returns everything that was ever wrong. */
  async violations(): Promise<readonly string[]> {
    await this.#read();
    return this.#violations;
  }

  /** The statuses that each turn went through, oldest first, by turn id. */
  async steps(): Promise<ReadonlyMap<string, readonly string[]>> {
    await this.#read();
    return this.#steps;
  }

  close(): Promise<void> {
    return this.#log.close();
  }

  async #read(): Promise<void> {
    for (const commit of await this.#log.next()) {
      const touched = this.#replay.apply(commit);
      if (touched.length > 0) this.commits += 1;
      const step = { touched, after: this.#replay, atMs: commit.atMs, limits: this.#limits };
      for (const [rule, ask] of Object.entries(LEDGER_RULES)) {
        this.#violations.push(...ask(step).map((what) => `${rule} at ${commit.lsn}: ${what}`));
      }
      for (const { table, was, is } of touched) {
        if (table !== 'mentor_turn' || !is || was?.['status'] === is['status']) continue;
        const id = String(is['id']);
        this.#steps.set(id, [...(this.#steps.get(id) ?? []), String(is['status'])]);
      }
    }
  }
}

async function refuseTurns(url: string, log: ChangeLog): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('select 1 from mentor_turn limit 1');
  await client.end();
  if (rows.length === 0) return;
  await log.close();
  throw new Error('an audit begins before the first turn');
}

/** Audits of one test. Register it before the hooks that drop the database: a slot keeps its database. */
export function useAudit(): (context: Mocha.Context, url: string, limits?: Partial<Limits>) => Promise<LedgerAudit> {
  const open: LedgerAudit[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((audit) => audit.close()));
  });
  return async (context, url, limits) => {
    const audit = await LedgerAudit.open(url, limits);
    if (audit === null) skipLoudly(context, 'this PostgreSQL does not run with wal_level = logical, so there is no change log to read');
    open.push(audit);
    return audit;
  };
}
