/**
 * Owns: every statement of the benches: the unit u, rows to begin with, and PostgreSQL's own counters. It talks through pg, one connection,
 * so that u is PostgreSQL and the driver and nothing of ours.
 */
import pg from 'pg';
import { type AccountId, type ConversationId, type RunId, uuidv7, type WorkspaceId } from '../../src/kernel/ids.ts';

/** What PostgreSQL has counted since it began. */
export interface Counters {
  /** WAL flushes that a connection waited for. Before PostgreSQL 18 the background's are among them. */
  readonly flushes: number;
  /** WAL flushes of background processes: the writer of asynchronous commits, checkpoints. */
  readonly backgroundFlushes: number;
  /** Committed transactions of this database. The server sends one statement a transaction, so: its statements. */
  readonly transactions: number;
}

/** Whose conversations are filled. */
export interface Owner {
  readonly workspaceId: WorkspaceId;
  readonly accountId: AccountId;
}

/** Where a thread hangs. */
export interface ThreadParent extends Owner {
  readonly conversationId: string;
  readonly entryId: string;
}

const FLUSHES_18 = `
  select coalesce(sum(fsyncs) filter (where backend_type = 'client backend'), 0)::int as flushes,
    coalesce(sum(fsyncs) filter (where backend_type <> 'client backend'), 0)::int as background
  from pg_stat_io where object = 'wal' and context = 'normal'`;
const FLUSHES_OLD = 'select wal_sync::int as flushes, 0 as background from pg_stat_wal';

export class BenchRows {
  readonly #client: pg.Client;
  #unitReady = false;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async open(url: string): Promise<BenchRows> {
    const client = new pg.Client({ connectionString: url, application_name: 'heph-bench' });
    await client.connect();
    return new BenchRows(client);
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  async serverVersion(): Promise<string> {
    return String((await this.#one('show server_version'))['server_version']).split(' ')[0] ?? '';
  }

  /** Durations of single-row INSERT commits, one after the other, milliseconds. */
  async unitInserts(count: number): Promise<number[]> {
    if (!this.#unitReady)
      await this.#client.query('create table bench_unit (id bigint generated always as identity primary key, note text not null)');
    this.#unitReady = true;
    const durations: number[] = [];
    for (let nth = 0; nth < count; nth++) {
      const startedMs = performance.now();
      await this.#client.query({ name: 'bench_unit', text: 'insert into bench_unit (note) values ($1)', values: [`row ${nth}`] });
      durations.push(performance.now() - startedMs);
    }
    return durations;
  }

  async counters(): Promise<Counters> {
    const { server_version_num: version } = await this.#one('show server_version_num');
    const { flushes, background } = await this.#one(Number(version) >= 180_000 ? FLUSHES_18 : FLUSHES_OLD);
    const { commits } = await this.#one('select xact_commit::int as commits from pg_stat_database where datname = current_database()');
    return { flushes: Number(flushes), backgroundFlushes: Number(background), transactions: Number(commits) };
  }

  /** A workspace with one account, so that what is filled here is on nobody's page. */
  async owner(): Promise<Owner> {
    const owner = { workspaceId: uuidv7<'workspace'>(), accountId: uuidv7<'account'>() };
    const slug = `bench-${owner.workspaceId}`;
    await this.#client.query("insert into workspace (id, slug, name) values ($1, $2, 'Bench')", [owner.workspaceId, slug]);
    await this.#client.query("insert into account (id, display_name) values ($1, 'Bench')", [owner.accountId]);
    await this.#client.query('insert into workspace_member (workspace_id, account_id) values ($1, $2)', [
      owner.workspaceId,
      owner.accountId,
    ]);
    return owner;
  }

  /** The account of everybody on this machine. */
  async localMember(): Promise<Owner> {
    const row = await this.#one(
      "select m.workspace_id, m.account_id from workspace_member m join workspace w on w.id = m.workspace_id where w.slug = 'home'",
    );
    return { workspaceId: row['workspace_id'] as WorkspaceId, accountId: row['account_id'] as AccountId };
  }

  /** Empty threads below one entry. */
  async threads(parent: ThreadParent, count: number): Promise<ConversationId[]> {
    const ids = Array.from({ length: count }, () => uuidv7<'conversation'>());
    await this.#client.query(
      `insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id)
      select id, $1::uuid, $2::uuid, $3::uuid, $4::uuid from unnest($5::uuid[]) as id`,
      [parent.workspaceId, parent.accountId, parent.conversationId, parent.entryId, ids],
    );
    return ids;
  }

  /** A conversation with `entries` entries, two a turn, every turn answered. `parent`: a thread there instead of the main conversation. */
  async filled(owner: Owner, entries: number, parent?: ThreadParent): Promise<{ conversationId: ConversationId; firstEntryId: string }> {
    const conversationId = uuidv7<'conversation'>();
    const turns = Math.floor(entries / 2);
    await this.#client.query(
      `insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id, version, last_seq)
      values ($1, $2, $3, $4, $5, $6, $7)`,
      [conversationId, owner.workspaceId, owner.accountId, parent?.conversationId ?? null, parent?.entryId ?? null, turns * 2, turns * 2],
    );
    await this.#client.query(FILL, [conversationId, owner.workspaceId, owner.accountId, turns]);
    const first = await this.#one('select id from mentor_entry where conversation_id = $1 and seq = 1', [conversationId]);
    return { conversationId, firstEntryId: String(first['id']) };
  }

  /**
   * One more turn, which shortened the conversation before its answer when `summary` is set, and a question that waits, admitted already.
   * Answers the run of the question.
   */
  async asked(owner: Owner, conversationId: ConversationId, { summary }: { readonly summary: boolean }): Promise<RunId> {
    const runId = uuidv7<'run'>();
    await this.#client.query(ASKED, [conversationId, owner.workspaceId, owner.accountId, runId, summary]);
    return runId;
  }

  /** Statistics for the planner, as autovacuum would gather them a minute later. */
  async analyze(): Promise<void> {
    await this.#client.query('analyze');
  }

  /** The map of what everybody sees, likewise: without it an index alone cannot answer. */
  async vacuum(): Promise<void> {
    await this.#client.query('vacuum mentor_entry, mentor_turn');
  }

  async #one(text: string, values: unknown[] = []): Promise<Record<string, unknown>> {
    const { rows } = await this.#client.query<Record<string, unknown>>(text, values);
    return rows[0] ?? {};
  }
}

/** The summary keeps its own turn's question and what comes later. */
const ASKED = `
  with conversation as (
    update mentor_conversation set version = version + 2, last_seq = last_seq + 4 where id = $1::uuid returning last_seq - 4 as seq
  ), ids as materialized (
    select seq, gen_random_uuid() as done_id, gen_random_uuid() as asked_id, gen_random_uuid() as question_id, gen_random_uuid() as summary_id,
      gen_random_uuid() as answer_id, gen_random_uuid() as waiting_id from conversation
  ), entries as (
    insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, payload)
    select question_id, $2::uuid, $1::uuid, done_id, seq + 1, 'QUESTION', 'app', 'Why does it work?', null from ids
    union all
    select summary_id, $2::uuid, $1::uuid, done_id, seq + 2, 'SUMMARY', 'app', null, format(
      '{"type":"compaction","id":"%s","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","summary":"It was said that it works.","firstKeptEntryId":"%s","tokensBefore":50000}',
      summary_id, question_id)::json from ids where $5::boolean
    union all
    select answer_id, $2::uuid, $1::uuid, done_id, seq + 3, 'ANSWER', 'app', 'Because it is tested.', format(
      '{"type":"message","id":"%s","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Because it is tested."}],"stopReason":"stop","timestamp":1767225600000}}',
      answer_id)::json from ids
    union all
    select waiting_id, $2::uuid, $1::uuid, asked_id, seq + 4, 'QUESTION', 'app', 'And now?', null from ids
  ), turns as (
    insert into mentor_turn (id, workspace_id, conversation_id, account_id, question_entry_id, question_seq, request_id, surface, status,
      attempt, started_at, ended_at, admission)
    select done_id, $2::uuid, $1::uuid, $3::uuid, question_id, seq + 1, 'done-' || done_id, 'app', 'DONE', 1, clock_timestamp(), clock_timestamp(), null from ids
    union all
    select asked_id, $2::uuid, $1::uuid, $3::uuid, waiting_id, seq + 4, 'asked-' || asked_id, 'app', 'QUEUED', 0, null, null, json_build_object(
      'connectionId', asked_id, 'modelId', asked_id, 'model', 'bench', 'api', 'openai-completions', 'providerModel', 'bench', 'contextTokens', 128000,
      'outputTokens', 8000, 'deadlineMs', 300000, 'priceKind', 'NO_CHARGE', 'inputPrice', null, 'outputPrice', null, 'cacheReadPrice', null,
      'cacheWritePrice', null) from ids
  )
  insert into agent_run (id, workspace_id, kind, conversation_id, turn_id, state, ended_at)
  select gen_random_uuid(), $2::uuid, 'TURN', $1::uuid, done_id, 'ENDED', clock_timestamp() from ids
  union all
  select $4::uuid, $2::uuid, 'TURN', $1::uuid, asked_id, 'WAITING', null from ids`;

/** Question and turn refer to each other, so both are written by one statement. */
const FILL = `
  with turn_of as materialized (
    select n, gen_random_uuid() as turn_id, gen_random_uuid() as question_id, gen_random_uuid() as answer_id
    from generate_series(1, $4::int) as n
  ), entries as (
    insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, payload)
    select question_id, $2::uuid, $1::uuid, turn_id, n * 2 - 1, 'QUESTION', 'app', 'Why does it work?', null from turn_of
    union all
    select answer_id, $2::uuid, $1::uuid, turn_id, n * 2, 'ANSWER', 'app', 'Because it is tested.', json_build_object(
      'type', 'message', 'id', answer_id, 'parentId', null, 'timestamp', '2026-01-01T00:00:00.000Z', 'message', json_build_object(
        'role', 'assistant', 'content', json_build_array(json_build_object('type', 'text', 'text', 'Because it is tested.')),
        'stopReason', 'stop', 'timestamp', 1767225600000)) from turn_of
  ), turns as (
    insert into mentor_turn (id, workspace_id, conversation_id, account_id, question_entry_id, question_seq, request_id, surface, status,
      attempt, started_at, ended_at)
    select turn_id, $2::uuid, $1::uuid, $3::uuid, question_id, n * 2 - 1, 'fill-' || turn_id, 'app', 'DONE', 1, clock_timestamp(), clock_timestamp()
    from turn_of
  )
  insert into agent_run (id, workspace_id, kind, conversation_id, turn_id, state, epoch, ended_at)
  select gen_random_uuid(), $2::uuid, 'TURN', $1::uuid, turn_id, 'ENDED', 1, clock_timestamp() from turn_of`;
