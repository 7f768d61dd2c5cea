/**
 * The auditor of the change log finds what it looks for. Each violation is planted in rows of a database whose constraints and triggers were taken
 * away: an auditor that cannot fail proves nothing about the faults that it is asked about (spec/failures).
 */
import { expect } from 'chai';
import { z } from 'zod';
import { closeCalls } from '../../db/gateway/close-calls.ts';
import { openCall } from '../../db/gateway/open-call.ts';
import { type Executor, sql } from '../../db/pool.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, run } from '../support/ledger.ts';
import { useAudit } from '../support/ledger-audit.ts';
import { bindModel } from '../support/models.ts';
import { claimed, endDone } from '../support/scene.ts';
import { readTuple } from '../support/test-decoding.ts';

type Place = Awaited<ReturnType<typeof place>>;
type Statement = ReturnType<typeof sql.unsafe>;

/** A conversation with a running turn, a call of it that is open, one that is closed, and a turn that waits. */
async function place(db: Parameters<typeof claimed>[0]) {
  await bindModel(db, { price: { kind: 'PRICED', input: '2.5', output: '10' } });
  const it = await claimed(db);
  const { turnId: waiting, runId: waitingRun } = await ask(db, it.person, it.conversationId);
  const [open, closed] = [uuidv7<'call'>(), uuidv7<'call'>()];
  for (const callId of [open, closed]) {
    const { conversationId, person, key } = it;
    await openCall(db, {
      callId,
      hostId: it.hostId,
      ...key,
      workspaceId: person.workspaceId,
      conversationId,
      api: 'openai-completions',
      callsMax: 40,
    });
  }
  const tokens = { inputTokens: 1_000, outputTokens: 100, cacheReadTokens: null, cacheWriteTokens: null };
  await closeCalls(db, [{ callId: closed, outcome: 'ok', httpStatus: 200, ...tokens }]);
  return { ...it, turnId: it.asked.turnId, runId: it.grant.runId, waiting, waitingRun, open, closed };
}

/** A row again, with some of its columns changed. */
const copyTurn = (id: string, change: object) =>
  sql.unsafe`insert into mentor_turn select (json_populate_record(t, ${JSON.stringify(change)}::json)).* from mentor_turn t where id = ${id} returning 1`;
const copyCall = (id: string, change: object) =>
  sql.unsafe`insert into llm_usage_event select (json_populate_record(e, ${JSON.stringify(change)}::json)).* from llm_usage_event e where id = ${id} returning 1`;
const entry = (p: Place, kind: string, seq: number) =>
  sql.unsafe`insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text)
    values (${uuidv7()}, ${p.person.workspaceId}, ${p.conversationId}, ${p.turnId}, ${seq}, ${kind}, 'app', 'planted') returning 1`;
const end = (p: Place, status: string) => [
  sql.unsafe`update mentor_turn set status = ${status}, ended_at = clock_timestamp() where id = ${p.turnId} returning 1`,
  sql.unsafe`update agent_run set state = 'ENDED', lease_until = null where id = ${p.runId} returning 1`,
  sql.unsafe`update turn_slot set run_id = null where run_id = ${p.runId} returning 1`,
];
const claim = (p: Place, attempt: number) => [
  sql.unsafe`update mentor_turn set status = 'RUNNING', attempt = ${attempt} where id = ${p.waiting} returning 1`,
  sql.unsafe`update agent_run set state = 'LEASED', epoch = 1, sandbox_id = ${p.sandbox.id} where id = ${p.waitingRun} returning 1`,
  sql.unsafe`update turn_slot set run_id = ${p.waitingRun} where slot_no = 4 returning 1`,
];

/** rule: R1, R2, R3, R4, R5, R6, R7, R8, R9, R15 */
const PLANTED: readonly (readonly [rule: string, what: string, plant: (p: Place) => readonly Statement[]])[] = [
  ['R1', 'a second turn that runs beside the first', (p) => claim(p, 1)],
  ['R2', 'a second turn of one requestId', (p) => [copyTurn(p.turnId, { id: uuidv7(), question_seq: 50 })]],
  [
    'R2',
    'a turn that takes another requestId',
    (p) => [sql.unsafe`update mentor_turn set request_id = 'x' where id = ${p.turnId} returning 1`],
  ],
  ['R3', 'a turn that starts before an older one ended', (p) => claim(p, 1)],
  ['R3', 'an entry that is written into the past', (p) => [entry(p, 'QUESTION', 1)]],
  [
    'R4',
    'a slot that is free although its turn runs',
    (p) => [sql.unsafe`update turn_slot set run_id = null where run_id = ${p.runId} returning 1`],
  ],
  ['R4', 'a slot that nobody frees', (p) => end(p, 'DONE').slice(0, 2)],
  [
    'R5',
    'an epoch that rises without a claim',
    (p) => [sql.unsafe`update agent_run set epoch = epoch + 1 where id = ${p.runId} returning 1`],
  ],
  ['R5', 'a model call of an earlier attempt', (p) => [copyCall(p.open, { id: uuidv7(), epoch: 0 })]],
  [
    'R5',
    'a run that changes its sandbox',
    (p) => [sql.unsafe`update agent_run set sandbox_id = ${uuidv7()} where id = ${p.runId} returning 1`],
  ],
  ['R6', 'a turn that is done although its run goes on', (p) => end(p, 'DONE').slice(0, 1)],
  ['R6', 'a turn that nobody can run', (p) => [copyTurn(p.waiting, { id: uuidv7(), question_seq: 51, request_id: 'another' })]],
  ['R7', 'an answer of a turn that still runs', (p) => [entry(p, 'ANSWER', 90)]],
  ['R7', 'an answer of a turn that failed', (p) => [...end(p, 'FAILED'), entry(p, 'ANSWER', 90)]],
  [
    ...(['R8', 'a lease by a clock that is 90 s fast'] as const),
    (p) => [sql.unsafe`update agent_run set lease_until = clock_timestamp() + interval '150 s' where id = ${p.runId} returning 1`],
  ],
  [
    ...(['R8', 'an attempt that is taken back while its lease holds'] as const),
    (p) => [
      sql.unsafe`update mentor_turn set status = 'QUEUED' where id = ${p.turnId} returning 1`,
      sql.unsafe`update agent_run set state = 'WAITING', sandbox_id = null, lease_until = null where id = ${p.runId} returning 1`,
      ...end(p, 'QUEUED').slice(2),
    ],
  ],
  ['R9', 'an attempt that is not counted at its claim', (p) => claim(p, 0)],
  ['R9', 'a third attempt', (p) => claim(p, 3)],
  [
    'R9',
    'an attempt that is counted without a claim',
    (p) => [sql.unsafe`update mentor_turn set attempt = 2 where id = ${p.turnId} returning 1`],
  ],
  [
    'R15',
    'a call that is closed twice',
    (p) => [sql.unsafe`update llm_usage_event set outcome = 'stalled' where id = ${p.closed} returning 1`],
  ],
  ['R15', 'a call that is forgotten', (p) => [sql.unsafe`delete from llm_usage_event where id = ${p.open} returning 1`]],
  [
    'R15',
    'a call whose price changes while it runs',
    (p) => [sql.unsafe`update llm_usage_event set input_price = 9 where id = ${p.open} returning 1`],
  ],
  ['R15', 'a call at another price than the turn was admitted with', (p) => [copyCall(p.open, { id: uuidv7(), output_price: 9 })]],
  ['R15', 'a call that is on record only when it is over', (p) => [copyCall(p.closed, { id: uuidv7(), cost: 0 })]],
  ['R15', 'money that is spent twice', () => [sql.unsafe`update llm_spend set cost = cost * 2 returning 1`]],
  [
    ...(['R15', 'a call that costs another sum than its tokens'] as const),
    (p) => [
      sql.unsafe`update llm_usage_event set state = 'CLOSED', outcome = 'ok', closed_at = clock_timestamp(), input_tokens = 7, cost = 1 where id = ${p.open} returning 1`,
      sql.unsafe`update llm_spend set cost = cost + 1 returning 1`,
    ],
  ],
];

describe('the auditor of the change log', function () {
  this.timeout(60_000);
  const startAudit = useAudit();
  const database = useDatabase();
  const planting = async (work: (tx: Executor) => Promise<unknown>) =>
    database.db.transaction(async (tx) => {
      await tx.any(sql.type(z.unknown())`set local session_replication_role = replica`); // no trigger and no foreign key looks
      await work(tx);
    });
  before(async () => {
    for (const statement of [
      sql.unsafe`drop index ux_mentor_turn_running`,
      sql.unsafe`drop index ux_agent_run_leased`,
      sql.unsafe`alter table turn_slot drop constraint ux_turn_slot_run`,
      sql.unsafe`alter table mentor_entry drop constraint ux_mentor_entry_seq`,
      sql.unsafe`alter table mentor_turn drop constraint ux_mentor_turn_request, drop constraint mentor_turn_attempts,
        drop constraint mentor_turn_ended, drop constraint mentor_turn_started, drop constraint mentor_turn_error`,
      sql.unsafe`alter table agent_run drop constraint agent_run_leased, drop constraint agent_run_ended`,
    ]) {
      await run(database.db, statement);
    }
  });
  beforeEach(() => emptyLedger(database.db));

  for (const [rule, what, plant] of PLANTED) {
    it(`finds ${what} (${rule})`, async function () {
      const audit = await startAudit(this, database.url);
      const p = await place(database.db);
      expect(await audit.violations(), 'nothing is wrong before').to.deep.equal([]);
      await planting(async (tx) => {
        for (const statement of plant(p)) expect(await tx.any(statement as never), 'it was planted').to.have.length(1);
      });
      expect((await audit.violations()).map((found) => found.split(' ')[0])).to.include(rule);
    });
  }

  it('finds more turns at once than there are slots (R4)', async function () {
    const audit = await startAudit(this, database.url, { capacity: 0 });
    await claimed(database.db);
    expect((await audit.violations())[0]).to.match(/^R4 .* 1 leased turns hold 1 of 0 slots$/);
  });

  it('tells the steps of each turn, and says nothing of a whole turn that went well', async function () {
    const audit = await startAudit(this, database.url);
    const it = await claimed(database.db);
    await endDone(it);
    expect(await audit.violations()).to.deep.equal([]);
    expect([...(await audit.steps())]).to.deep.equal([[it.asked.turnId, ['QUEUED', 'RUNNING', 'DONE']]]);
    expect(audit.commits).to.be.above(3);
  });

  it('begins before the first turn, or not at all', async function () {
    await claimed(database.db);
    const refused = await startAudit(this, database.url).catch((error: unknown) => error);
    expect(String(refused)).to.include('before the first turn');
  });

  it('reads words as they were written, whatever they hold', () => {
    const words = `it''s [text]:'x' new-tuple: a[uuid]:null\n 北 "`;
    expect(
      readTuple(`a[text]:'${words.replaceAll("'", "''")}' "odd ""name"[integer[]]:'{1,2}' n[numeric]:-1.50 b[boolean]:t z[uuid]:null`),
    ).to.deep.equal({
      ...{ a: words, 'odd "name': '{1,2}', n: '-1.50', b: 't', z: null },
    });
  });
});
