/**
 * Owns: the rows of the ledger as they were at each commit, rebuilt from a change log that began before the first turn.
 * Does not own: what must be true of them (ledger-rules.ts).
 */
import type { Commit, Row } from './test-decoding.ts';

/** Tables that are replayed, each with its key. */
const KEYS = {
  mentor_turn: ['id'],
  agent_run: ['id'],
  turn_slot: ['slot_no'],
  mentor_entry: ['id'],
  llm_usage_event: ['id'],
  llm_spend: ['month', 'workspace_id'],
  sandbox: ['id'],
  slack_turn: ['turn_id'],
  outbox_action: ['id'],
  outbox_step: ['action_id', 'at', 'from_state', 'to_state'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type Table = keyof typeof KEYS;
export const REPLAYED_TABLES = Object.keys(KEYS) as readonly Table[];

/** One row that a commit changed: as it was before, and as it is after. */
export interface Touched {
  readonly table: Table;
  readonly was: Row | null;
  readonly is: Row | null;
}

export interface Limits {
  /** Slots of the installation. */
  readonly capacity: number;
  readonly leaseTtlMs: number;
  /** Longest deadline of a turn. */
  readonly deadlineMs: number;
}

/** One commit: what it changed, and everything as it is after it. */
export interface Step {
  readonly touched: readonly Touched[];
  readonly after: LedgerReplay;
  /** By the database's clock. */
  readonly atMs: number;
  readonly limits: Limits;
}

/** What is wrong, in words; nothing when the rule holds. */
export type Rule = (step: Step) => readonly string[];

export class LedgerReplay {
  readonly #tables = new Map<Table, Map<string, Row>>(REPLAYED_TABLES.map((table) => [table, new Map()]));
  readonly #runByTurn = new Map<string, string>();
  readonly #turnsByConversation = new Map<string, Set<string>>();
  readonly #leased = new Set<string>();
  /** Highest seq of each conversation before the commit that was applied last. */
  readonly seqBefore = new Map<string, number>();
  #newSeqs: readonly [string, number][] = [];

  /** Applies a whole transaction. A row that it changed twice is told once. */
  apply(commit: Commit): readonly Touched[] {
    for (const [conversation, seq] of this.#newSeqs) this.seqBefore.set(conversation, Math.max(seq, this.seqBefore.get(conversation) ?? 0));
    const touched = new Map<string, Touched>();
    for (const { table: name, kind, row } of commit.changes) {
      const table = name as Table;
      if (kind === 'TRUNCATE') this.#clear(table);
      else {
        const key = KEYS[table].map((column) => row[column]).join(' ');
        const was = this.rows(table).get(key) ?? null;
        const is = kind === 'DELETE' ? null : { ...was, ...row };
        this.#put(table, key, is);
        const first = touched.get(`${table} ${key}`);
        touched.set(`${table} ${key}`, { table, was: first ? first.was : was, is });
      }
    }
    const all = [...touched.values()];
    this.#newSeqs = all.flatMap(({ table, is }) =>
      table === 'mentor_entry' && is ? [[String(is['conversation_id']), Number(is['seq'])]] : [],
    );
    return all;
  }

  rows(table: Table): ReadonlyMap<string, Row> {
    return this.#tables.get(table) as Map<string, Row>;
  }

  turn(id: string | null | undefined): Row | undefined {
    return this.rows('mentor_turn').get(String(id));
  }

  run(id: string | null | undefined): Row | undefined {
    return this.rows('agent_run').get(String(id));
  }

  runOfTurn(turnId: string | null | undefined): Row | undefined {
    return this.run(this.#runByTurn.get(String(turnId)));
  }

  turnsOf(conversationId: string | null | undefined): readonly Row[] {
    return [...(this.#turnsByConversation.get(String(conversationId)) ?? [])].flatMap((id) => present(this.turn(id)));
  }

  /** Runs that are leased now. */
  leased(): readonly Row[] {
    return [...this.#leased].flatMap((id) => present(this.run(id)));
  }

  /** Slots that this run holds. */
  slotsOf(runId: string | null | undefined): number {
    return [...this.rows('turn_slot').values()].filter((slot) => slot['run_id'] === runId).length;
  }

  #put(table: Table, key: string, row: Row | null): void {
    const rows = this.#tables.get(table) as Map<string, Row>;
    if (row) rows.set(key, row);
    else rows.delete(key);
    if (table === 'agent_run') this.#indexRun(key, row);
    if (table === 'mentor_turn' && row) {
      const conversation = String(row['conversation_id']);
      const turns = this.#turnsByConversation.get(conversation) ?? new Set();
      this.#turnsByConversation.set(conversation, turns.add(key));
    }
  }

  #indexRun(key: string, row: Row | null): void {
    if (row?.['turn_id']) this.#runByTurn.set(row['turn_id'], key);
    if (row?.['state'] === 'LEASED') this.#leased.add(key);
    else this.#leased.delete(key);
  }

  #clear(table: Table): void {
    (this.#tables.get(table) as Map<string, Row>).clear();
    if (table === 'agent_run') for (const index of [this.#runByTurn, this.#leased]) index.clear();
    if (table === 'mentor_turn') this.#turnsByConversation.clear();
    if (table === 'mentor_entry') this.seqBefore.clear();
  }
}

function present(row: Row | undefined): readonly Row[] {
  return row ? [row] : [];
}
