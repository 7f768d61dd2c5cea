/**
 * Upgrades: a database that the first released migrations made, with data of that time, is migrated and served; and a server works on a database
 * that a newer one has already extended (expand first, contract a release later).
 */
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { migrationNames } from '../../db/migrate.ts';
import { blankDatabase } from '../support/database.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { WebClient } from '../support/person.ts';
import { removeDataDirs, ServerProcess } from '../support/server-process.ts';

/** 0001 and 0002: what the first release had. */
const FIRST_RELEASE = 2;
const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
/** The account of local mode. */
const ACCOUNT = id(1);
const [WORKSPACE, CONVERSATION, HOST, SANDBOX] = [id(2), id(3), id(4), id(5)];
/** Bytes that a json column keeps and a jsonb column would not: key order, spaces, an escaped NUL. */
const OLD_PAYLOAD =
  '{"type":"message","id":"a1b2c3d4","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z",  "message":{"role":"assistant","content":[{"type":"text","text":"Iron, and \\u0000 patience."}],"zebra":1,"apple":2}}';

/** A person's conversation in the middle of its life: one turn answered, one running at a server that died, one waiting. */
const DATA_OF_THEN = `
  insert into workspace (id, slug, name) values ('${WORKSPACE}', 'home', 'Home');
  insert into account (id, display_name, time_zone) values ('${ACCOUNT}', 'You', 'Europe/Berlin');
  insert into workspace_member (workspace_id, account_id, role) values ('${WORKSPACE}', '${ACCOUNT}', 'operator');
  insert into mentor_conversation (id, workspace_id, account_id, version, last_seq, last_answer_at)
    values ('${CONVERSATION}', '${WORKSPACE}', '${ACCOUNT}', 7, 4, clock_timestamp() - interval '1 day');
  insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, payload) values
    ('${id(11)}', '${WORKSPACE}', '${CONVERSATION}', null, 1, 'QUESTION', 'app', 'What does a smith need?', null),
    ('${id(12)}', '${WORKSPACE}', '${CONVERSATION}', null, 2, 'ANSWER', 'app', 'Iron, and patience.', '${OLD_PAYLOAD}'),
    ('${id(13)}', '${WORKSPACE}', '${CONVERSATION}', null, 3, 'QUESTION', 'app', 'And an anvil?', null),
    ('${id(14)}', '${WORKSPACE}', '${CONVERSATION}', null, 4, 'QUESTION', 'app', 'And a hammer?', null);
  insert into mentor_turn
    (id, workspace_id, conversation_id, account_id, question_entry_id, question_seq, request_id, surface, status, attempt, started_at, ended_at) values
    ('${id(21)}', '${WORKSPACE}', '${CONVERSATION}', '${ACCOUNT}', '${id(11)}', 1, 'r1', 'app', 'DONE', 1, clock_timestamp(), clock_timestamp()),
    ('${id(22)}', '${WORKSPACE}', '${CONVERSATION}', '${ACCOUNT}', '${id(13)}', 3, 'r2', 'app', 'RUNNING', 1, clock_timestamp(), null),
    ('${id(23)}', '${WORKSPACE}', '${CONVERSATION}', '${ACCOUNT}', '${id(14)}', 4, 'r3', 'app', 'QUEUED', 0, null, null);
  update mentor_entry set turn_id = case seq when 3 then '${id(22)}'::uuid when 4 then '${id(23)}' else '${id(21)}' end;
  insert into sandbox_host (id, name, lock_key, capacity_turns) values ('${HOST}', 'a machine of then', 4711, 4);
  insert into sandbox (id, workspace_id, conversation_id, host_id, credential_hash, state)
    values ('${SANDBOX}', '${WORKSPACE}', '${CONVERSATION}', '${HOST}', decode(repeat('ab', 32), 'hex'), 'READY');
  insert into agent_run (id, workspace_id, kind, conversation_id, turn_id, state, epoch, sandbox_id, lease_until, deadline_at, bound_at, ended_at) values
    ('${id(31)}', '${WORKSPACE}', 'TURN', '${CONVERSATION}', '${id(21)}', 'ENDED', 1, null, null, null, null, clock_timestamp()),
    ('${id(32)}', '${WORKSPACE}', 'TURN', '${CONVERSATION}', '${id(22)}', 'LEASED', 1, '${SANDBOX}', clock_timestamp() - interval '1 s',
      clock_timestamp() + interval '10 min', clock_timestamp() + interval '10 min', null),
    ('${id(33)}', '${WORKSPACE}', 'TURN', '${CONVERSATION}', '${id(23)}', 'WAITING', 0, null, null, null, null, null);
  insert into turn_slot (slot_no, run_id) values (1, '${id(32)}'), (2, null), (3, null), (4, null);
  insert into llm_usage_event (id, workspace_id, conversation_id, turn_id, run_id, epoch, attempt, api, model, state, outcome, closed_at)
    values ('${id(41)}', '${WORKSPACE}', '${CONVERSATION}', '${id(21)}', '${id(31)}', 1, 1, 'openai-completions', 'then', 'CLOSED', 'ok', clock_timestamp());`;

/** What a release after this one may do while servers of this one still run: add columns that have a value, tables, and the note of its migration. */
const EXPANDED = `
  do $$ declare t text; begin
    for t in select tablename from pg_tables where schemaname = 'public' and tablename <> 'heph_migration' loop
      execute format('alter table %I add column of_the_next_release text default ''new''', t);
    end loop;
  end $$;
  create table thing_of_the_next_release (id uuid primary key);
  insert into heph_migration (name, run_on) values ('9999_next_release', clock_timestamp());`;

describe('an upgrade', function () {
  this.timeout(120_000);
  const servers: ServerProcess[] = [];
  let model: ModelServer;
  let database: Awaited<ReturnType<typeof blankDatabase>>;
  let client: pg.Client;

  before(async () => {
    model = await startModelServer();
    database = await blankDatabase();
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.kill()));
    await client.end();
    await model.close();
    await database.drop();
    removeDataDirs();
  });

  async function serve(): Promise<{ server: ServerProcess; person: WebClient }> {
    const env = {
      ...{ HEPH_DATABASE_URL: database.url, HEPH_LLM_API: 'openai-completions', HEPH_LLM_BASE_URL: model.url },
      ...{ HEPH_LLM_API_KEY: 'k', HEPH_LLM_MODEL: 'model-of-the-spec', HEPH_SANDBOX_WARM: '0' },
    };
    const server = await ServerProcess.start({ env });
    servers.push(server);
    return { server, person: new WebClient(`http://127.0.0.1:${server.port}`) };
  }

  it('of the first released database keeps its words byte for byte, ends what ran and what waited, and serves on', async () => {
    const dir = fileURLToPath(new URL('../../db/migrations', import.meta.url));
    const settings = { dbClient: client, dir, migrationsTable: 'heph_migration', direction: 'up' as const, logger: QUIET };
    await runner({ ...settings, count: FIRST_RELEASE });
    await client.query(DATA_OF_THEN);

    const { server, person } = await serve();
    const applied = await client.query('select name from heph_migration order by name');
    expect(applied.rows.map(({ name }) => name)).to.deep.equal(migrationNames());
    expect(await person.waitForTurn(id(22)), 'its sandbox is gone: a second attempt').to.include({ status: 'DONE', attempt: 2 });
    expect(await person.waitForTurn(id(23))).to.include({ status: 'DONE', attempt: 1 });
    const { turn } = await person.ask('And now?');
    expect(turn.conversationId, 'the same conversation goes on').to.equal(CONVERSATION);
    await person.waitForTurn(turn.id);
    expect((await person.entries(CONVERSATION)).map(({ text }) => text)).to.deep.equal([
      ...['What does a smith need?', 'Iron, and patience.', 'And an anvil?', 'And a hammer?'],
      ...['You asked: And an anvil?', 'You asked: And a hammer?', 'And now?', 'You asked: And now?'],
    ]);
    const { rows } = await client.query(`select payload::text as payload from mentor_entry where id = '${id(12)}'`);
    expect(rows[0].payload).to.equal(OLD_PAYLOAD);
    expect(model.seen.at(-1)?.rawBody.toString('utf8'), 'the model is shown what was said then').to.include('What does a smith need?');
    expect((await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)).status).to.equal(200);
  });

  it('that a newer server has begun is no hindrance: this one serves on, and can be started again, beside it', async () => {
    const [running] = servers;
    await client.query(EXPANDED);
    const before = new WebClient(`http://127.0.0.1:${running?.port}`);
    const first = await before.ask('Do you notice?');
    expect(await before.waitForTurn(first.turn.id)).to.include({ status: 'DONE', attempt: 1 });
    const { server, person } = await serve();
    const second = await person.ask('And you?');
    expect(await person.waitForTurn(second.turn.id)).to.include({ status: 'DONE', attempt: 1 });
    expect((await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)).status).to.equal(200);
  });
});
