/**
 * The cost of an actor that comes into memory: one statement, which reads the same few pages whatever the conversation's length.
 */
import { expect } from 'chai';
import pg from 'pg';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { type Executor, sql } from '../../db/pool.ts';
import type { ConversationId, WorkspaceId } from '../../src/kernel/ids.ts';
import { openPlayed, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makeMain, makePerson, run } from '../support/ledger.ts';

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** The statement that an activation sends, with its values. */
async function statementOf(id: ConversationId): Promise<{ text: string; values: readonly unknown[] }> {
  let seen = { text: '', values: [] as readonly unknown[] };
  const spy = {
    maybeOne: async (query: { sql: string; values: readonly unknown[] }) => {
      seen = { text: query.sql.replaceAll('$slonik_', '$'), values: query.values };
      return null;
    },
  };
  await loadConversation(spy as unknown as Executor, id);
  return seen;
}

describe('the activation of a conversation', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  async function explain(id: ConversationId): Promise<PlanNode> {
    const { text, values } = await statementOf(id);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    try {
      await client.query('vacuum analyze');
      const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, [...values]);
      return rows[0]['QUERY PLAN'][0]['Plan'];
    } finally {
      await client.end();
    }
  }

  const nodes = (plan: PlanNode): readonly PlanNode[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)];
  const buffers = (plan: PlanNode) => plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];

  async function lengthen(id: ConversationId, turns: number, entriesEach: number): Promise<void> {
    await run(
      database.db,
      sql.unsafe`
      with fresh as materialized (
        select c.id as conversation_id, c.workspace_id, c.account_id, c.last_seq, n, gen_random_uuid() as turn_id, gen_random_uuid() as entry_id
        from mentor_conversation c, generate_series(1, ${turns}::int) as n where c.id = ${id}
      ), said as (
        insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text)
        select case when e = 1 then entry_id else gen_random_uuid() end, workspace_id, conversation_id, turn_id,
          last_seq + (n - 1) * ${entriesEach}::int + e, case when e = 1 then 'QUESTION' else 'ANSWER' end, 'app', repeat('word ', 200)
        from fresh, generate_series(1, ${entriesEach}::int) as e
      ), turn as (
        insert into mentor_turn (id, workspace_id, conversation_id, account_id, question_entry_id, question_seq, request_id, surface, status,
          attempt, started_at, ended_at)
        select turn_id, workspace_id, conversation_id, account_id, entry_id, last_seq + (n - 1) * ${entriesEach}::int + 1, turn_id::text, 'app',
          'DONE', 1, clock_timestamp(), clock_timestamp() from fresh
      ), run as (
        insert into agent_run (id, workspace_id, kind, conversation_id, turn_id, state, epoch, ended_at)
        select gen_random_uuid(), workspace_id, 'TURN', conversation_id, turn_id, 'ENDED', 1, clock_timestamp() from fresh
      )
      update mentor_conversation set last_seq = last_seq + ${turns * entriesEach}::int, version = version + 1 where id = ${id} returning 1`,
    );
  }

  /** Many other people, one of whom has talked a lot. */
  async function crowd(workspaceId: WorkspaceId): Promise<void> {
    await run(
      database.db,
      sql.unsafe`
      with person as (
        insert into account (id, display_name) select gen_random_uuid(), 'Bob' from generate_series(1, 3000) returning id
      )
      insert into mentor_conversation (id, workspace_id, account_id) select gen_random_uuid(), ${workspaceId}::uuid, id from person returning 1`,
    );
    const talker = await makePerson(database.db);
    await lengthen(await makeMain(database.db, talker), 3_000, 2);
  }

  it('is one statement', async () => {
    const { server, attempt } = await openPlayed(start, database.db);
    const nobody = attempt({ id: '00000000-0000-7000-8000-000000000000', epoch: 1 });
    await server.runtime.publishPartial(nobody, { offset: 0, text: 'x', stage: null });
    const looks = 'ledger_sandbox_demand'; // of another actor, at its start
    expect(server.db.names().filter((name) => name !== looks)).to.deep.equal(['ledger_load_conversation', 'ledger_check_attempt']);
  });

  it('reads the same pages by indexes for 10 entries and for 10,000', async function () {
    this.timeout(60_000);
    const { db, person, conversationId, sandbox } = await openPlayed(start, database.db);
    await crowd(person.workspaceId); // tables of one page are read whole
    for (let n = 0; n < 3; n++) await ask(db, person, conversationId);
    await claimOne(db, conversationId, sandbox.sandboxId);
    await lengthen(conversationId, 5, 2);
    const short = await explain(conversationId);
    await lengthen(conversationId, 2_000, 5);
    const long = await explain(conversationId);
    expect(buffers(short)).to.be.above(0);
    // An index may have grown by a level, and a vacuum may have passed by.
    expect(buffers(long)).to.be.at.most(buffers(short) + 2);
    const scans = nodes(long).filter((node) => node['Relation Name'] !== undefined);
    expect(scans.map((node) => `${node['Node Type']} ${node['Relation Name']}`)).to.satisfy((all: readonly string[]) =>
      all.every((scan) => scan.startsWith('Index ')),
    );
    expect(scans.some((node) => node['Relation Name'] === 'mentor_entry')).to.equal(false);
  });
});
