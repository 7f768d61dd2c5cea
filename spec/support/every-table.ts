/**
 * A database that has rows in every table that a backup holds, words that a format could break among them; and reading all rows back as text.
 */
import { randomUUID } from 'node:crypto';
import { backedUpTables } from '../../db/backup/catalogue.ts';
import { type Database, sql } from '../../db/pool.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { ask, makeMain, makePerson, run } from './ledger.ts';
import { setBudget, spend } from './models.ts';
import { answer, claimed, endDone } from './scene.ts';
import { connect, fillOutbox, origin, TEAM } from './slack-scene.ts';

/** Separators of lines, of JSON, of arrays and of SQL; and more than one batch of a statement holds. */
export const ODD_WORDS = [
  'a\u2028b\u2029c\r\nd\te',
  '{"x":["NULL",null]}',
  "'; drop table account; --\\",
  'ß 漢字 👩‍🚀 \u0001',
  ' ',
  'x'.repeat(500_000),
];

/** Fills every table. One turn is done, one runs, one of Slack waits. Returns the person who asked. */
export async function fillEveryTable(db: Database) {
  const it = await claimed(db);
  await endDone(
    it,
    ODD_WORDS.map((words) => answer(words)),
  );
  const other = await claimed(db);
  const { person, conversationId, hostId } = other;
  await connect(db, person);
  const inSlack = await ask(db, person, conversationId, { slack: origin(), text: 'Why in Slack?' });
  await fillOutbox(db, person, [1, 1]);
  await run(
    db,
    sql.unsafe`update outbox_action set state = 'SENDING', lease_id = gen_random_uuid(), lease_until = clock_timestamp(),
      started_at = clock_timestamp(), due_at = null`,
  );
  await fillOutbox(db, person, [2, 1]);
  await fillMoney(db, person.workspaceId, { ...other.key, turnId: other.asked.turnId, conversationId, hostId });
  await fillPeople(db, person);
  return { person, conversationId, openSlackTurn: inSlack.turnId, runningTurn: other.asked.turnId };
}

interface Call {
  readonly runId: string;
  readonly epoch: number;
  readonly turnId: string;
  readonly conversationId: string;
  readonly hostId: string;
}

async function fillMoney(db: Database, workspaceId: string, call: Call): Promise<void> {
  await setBudget(db, workspaceId, '12.3400');
  await spend(db, workspaceId, '0.000000001230');
  await run(
    db,
    sql.unsafe`insert into llm_usage_event (id, workspace_id, conversation_id, turn_id, run_id, epoch, attempt, api, model, host_id, input_price)
      values (${uuidv7()}, ${workspaceId}, ${call.conversationId}, ${call.turnId}, ${call.runId}, ${call.epoch}, 1, 'openai-completions', 'm',
        ${call.hostId}, 3.100)`,
  );
  await run(
    db,
    sql.unsafe`insert into mentor_path (turn_id, workspace_id, conversation_id, question_seq, read_at, time_zone, system_hash, entries)
      values (${call.turnId}, ${workspaceId}, ${call.conversationId}, 1, clock_timestamp(), 'UTC', '\\x00ff0a0d5c22277f', decode(repeat('5c', 32), 'hex'))`,
  );
}

async function fillPeople(db: Database, { workspaceId, accountId }: { workspaceId: string; accountId: string }): Promise<void> {
  const invited = await makePerson(db);
  await makeMain(db, invited);
  const repository = randomUUID();
  for (const statement of [
    sql.unsafe`insert into account_identity (issuer, subject, account_id, email) values ('https://login.example.com', 'a|b', ${accountId}, 'ada@example.com')`,
    sql.unsafe`insert into account_invitation (email, account_id) values ('bob@example.com', ${invited.accountId})`,
    sql.unsafe`insert into web_session (id_hash, account_id, ends_at, last_moment_at)
      values (decode(repeat('ab', 32), 'hex'), ${accountId}, clock_timestamp() + interval '1 h', clock_timestamp() + interval '1 h')`,
    sql.unsafe`insert into slack_identity (team_id, user_id, account_id) values (${TEAM}, 'U0ADA', ${accountId})`,
    sql.unsafe`insert into slack_event (team_id, event_id, channel_id, outcome, done_at)
      select ${TEAM}, 'Ev' || n, 'D0ADA', 'asked', clock_timestamp() from generate_series(1, 2500) n`,
    sql.unsafe`insert into repository (id, workspace_id, name, clone_url) values (${repository}, ${workspaceId}, 'anvil', 'https://git.example.com/a.git')`,
    sql.unsafe`insert into repository_request (repository_id, number, ref) values (${repository}, 7, 'refs/pull/7/head')`,
    sql.unsafe`insert into claim_pause (workspace_id, reason, operator) values (${invited.workspaceId}, 'a spec', 'local')`,
    sql.unsafe`insert into operator_action (id, idempotency_key, operator, action, target, reason, state_before)
      values (${uuidv7()}, 'k', 'local', 'stop', 't', 'r', ${'{ "a" : 1 }'}::json)`,
    sql.unsafe`insert into operator_account (account_id, role, granted_by) values (${accountId}, 'viewer', 'local')`,
    sql.unsafe`insert into run_attempt (run_id, epoch, how) select id, 99, 'HANDED_ON' from agent_run limit 1`,
    sql.unsafe`insert into weekly_sweep (name, week) values ('a spec', '2026-11-29') on conflict do nothing`,
  ]) {
    await run(db, statement);
  }
}

/** All rows of each table as PostgreSQL writes them, sorted. */
export async function everyRow(db: Database): Promise<ReadonlyMap<string, readonly string[]>> {
  const tables = new Map<string, readonly string[]>();
  for (const name of backedUpTables()) {
    const table = sql.identifier([name]);
    const rows = await run(db, sql.unsafe`select md5(t::text) || ' ' || left(t::text, 300) as line from ${table} t order by 1`);
    tables.set(
      name,
      rows.map(({ line }) => String(line)),
    );
  }
  return tables;
}
