/**
 * Owns: what operators look at beside turns: the outbox, sandboxes, spending, and one conversation with its actor. From PostgreSQL; what only
 * this server has in memory (the actor, the runners) is added where it is known.
 */
import { readActionsOf } from '../../db/ops/actions.ts';
import { readAttempts, readConversationFacts, readLedger } from '../../db/ops/conversation.ts';
import { type OutboxChoice, type OutboxRow, readOutboxChannels, readOutboxPage } from '../../db/ops/outbox.ts';
import { readSandboxPage, type SandboxChoice, type SandboxRow } from '../../db/ops/sandboxes.ts';
import { readSpending } from '../../db/ops/spending.ts';
import { readTurnFacts } from '../../db/ops/turn-facts.ts';
import type { Executor } from '../../db/pool.ts';
import type {
  ConversationPage,
  ConversationQuery,
  LedgerLine,
  OutboxLine,
  OutboxPage,
  OutboxQuery,
  SandboxesPage,
  SandboxesQuery,
  SandboxLine,
  SpendingLine,
  SpendingQuery,
} from '../contract/operator-views.ts';
import { toActionView } from './operator-view.ts';
import { toOperatorTurn } from './stuck.ts';
import { toAttempts } from './turn-timeline.ts';

/** A runner of this server. */
export interface KnownRunner {
  readonly sandboxId: string | null;
  readonly state: string;
  readonly pid: number | null;
  /** Resident memory, where the system tells. */
  readonly rssBytes?: number;
}

export type KnownActor = NonNullable<ConversationPage['actor']> & { readonly kind: string; readonly id: string };

/** What this server has in memory. */
export interface InMemory {
  actors(): readonly KnownActor[];
  runners(): readonly KnownRunner[];
}

/** Of each list on the page of a conversation. */
const LIST_MAX = 20;

export class OperatorPages {
  readonly #db: Executor;
  readonly #memory: InMemory;

  constructor(db: Executor, memory: InMemory) {
    this.#db = db;
    this.#memory = memory;
  }

  async outbox({ limit, ...query }: OutboxQuery): Promise<OutboxPage> {
    const { state = null, workspace = null, channel = null, conversation = null, after = null } = query;
    const choice: OutboxChoice = { state, workspace, channel, conversation, after, limit: limit + 1 };
    const [channels, rows] = await Promise.all([readOutboxChannels(this.#db), readOutboxPage(this.#db, choice)]);
    const page = rows.slice(0, limit);
    return {
      channels: channels.map(({ oldest_ms: oldestMs, ...one }) => ({ ...one, oldestMs })),
      outbox: page.map(toOutboxLine),
      nextAfter: rows.length > limit ? (page.at(-1)?.seq ?? null) : null,
    };
  }

  async sandboxes({ state, limit, ...query }: SandboxesQuery): Promise<SandboxesPage> {
    const { host = null, workspace = null, conversation = null, before = null } = query;
    const rows = await this.#sandboxes({ state, host, workspace, conversation, before, limit: limit + 1 });
    const page = rows.slice(0, limit);
    return { sandboxes: page, nextBefore: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
  }

  async spending({ month, workspace }: SpendingQuery): Promise<readonly SpendingLine[]> {
    const rows = await readSpending(this.#db, month ?? null, workspace ?? null);
    return rows.map(({ input, output, cache_read: cacheRead, ...row }) => ({ ...row, tokens: { input, output, cacheRead } }));
  }

  /** null: there is no such conversation. */
  async conversation(id: string, { limit, ...query }: ConversationQuery): Promise<ConversationPage | null> {
    const db = this.#db;
    const before = query.before ?? null;
    const facts = await readConversationFacts(db, id);
    if (!facts) return null;
    const filter = { workspace: null, surface: null, conversation: id };
    const newest = { before: null, limit: LIST_MAX, filter };
    const [queued, running, ended] = await Promise.all([
      readTurnFacts(db, { list: 'queued', ...newest, oldestFirst: true }),
      readTurnFacts(db, { list: 'running', ...newest }),
      readTurnFacts(db, { list: 'ended', ...newest }),
    ]);
    const [entries, attempts, actions] = await Promise.all([
      readLedger(db, { conversation: id, before, limit: limit + 1 }),
      readAttempts(db, { conversation: id }),
      readActionsOf(db, id),
    ]);
    const anyBox = { host: null, workspace: null, conversation: id, before: null, limit: LIST_MAX };
    const [live, over, outbox] = await Promise.all([
      this.#sandboxes({ state: 'live', ...anyBox }),
      this.#sandboxes({ state: 'ended', ...anyBox }),
      readOutboxPage(db, { state: null, workspace: null, channel: null, conversation: id, after: null, limit: LIST_MAX }),
    ]);
    const { workspace, account, parent, version, created_at: createdAt, erased } = facts;
    const shown = entries.slice(0, limit);
    return {
      conversation: { id, workspace, account, parent, version, createdAt, entries: facts.entries, erased },
      actor: this.#actor(id),
      mailbox: [...running, ...queued].map(toOperatorTurn),
      ended: ended.map(toOperatorTurn),
      attempts: toAttempts(attempts),
      ledger: withGaps(
        shown.map(({ created_at: at, ...entry }) => ({ ...entry, createdAt: at })),
        {
          from: before === null ? facts.last_seq + 1 : before,
          whole: entries.length <= limit,
        },
      ),
      nextBefore: entries.length > limit ? (shown.at(-1)?.seq ?? null) : null,
      sandboxes: [...live, ...over],
      outbox: outbox.map(toOutboxLine),
      actions: actions.map(toActionView),
    };
  }

  #actor(id: string): ConversationPage['actor'] {
    const found = this.#memory.actors().find((one) => one.kind === 'conversation' && one.id === id);
    if (!found) return null;
    const { state, mailboxDepth, oldestWaitMs, lastFault, commandsHandled } = found;
    return { state, mailboxDepth, oldestWaitMs, lastFault, commandsHandled };
  }

  async #sandboxes(choice: SandboxChoice): Promise<readonly SandboxLine[]> {
    const rows = await readSandboxPage(this.#db, choice);
    const runners = new Map(this.#memory.runners().flatMap((one) => (one.sandboxId === null ? [] : [[one.sandboxId, one]])));
    return rows.map((row) => toSandboxLine(row, runners.get(row.id)));
  }
}

type Entry = Extract<LedgerLine, { readonly id: string }>;

/**
 * Newest first, with the numbers that no entry has. `from`: the number after the newest that could be there; `whole`: the first entry of the
 * conversation is among these.
 */
export function withGaps(
  entries: readonly Entry[],
  { from, whole }: { readonly from: number; readonly whole: boolean },
): readonly LedgerLine[] {
  const lines: LedgerLine[] = [];
  let above = from;
  for (const entry of entries) {
    if (above - entry.seq > 1) lines.push({ seq: entry.seq + 1, missing: above - entry.seq - 1 });
    lines.push(entry);
    above = entry.seq;
  }
  if (whole && above > 1) lines.push({ seq: 1, missing: above - 1 });
  return lines;
}

function toOutboxLine({ id, state, reason, workspace, team, channel, turn, attempts, created_at, due_at }: OutboxRow): OutboxLine {
  return { id, state, reason, workspace, team, channel, turn, attempts, createdAt: created_at, dueAt: due_at };
}

function toSandboxLine(row: SandboxRow, runner: KnownRunner | undefined): SandboxLine {
  const { id, conversation, workspace, host_id, host: name, host_alive: alive, age_ms: ageMs, created_at: createdAt, turn, epoch } = row;
  return {
    ...{ id, conversation, workspace, state: row.start_failed ? 'START_FAILED' : row.state, host: { id: host_id, name, alive } },
    ...{ ageMs, createdAt, turn, epoch },
    runner: runner ? { state: runner.state, pid: runner.pid, memoryBytes: runner.rssBytes ?? null } : null,
  };
}
