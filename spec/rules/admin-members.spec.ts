/**
 * Members and what was spent, as an admin sees them: the command line and the API that it speaks.
 */
import { expect } from 'chai';
import { closeCalls, closeUnknownCalls } from '../../db/gateway/close-calls.ts';
import { openCall } from '../../db/gateway/open-call.ts';
import { sql } from '../../db/pool.ts';
import { adminHelp, runAdminCommand } from '../../src/cli/run.ts';
import { createOpsListener, type HttpListener, requireLocalAdmin } from '../../src/http/index.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { MemberAdmin } from '../../src/models/members.ts';
import { createMetrics } from '../../src/ops/index.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makePerson, type Person, run } from '../support/ledger.ts';
import { type SeededAttempt, seedAttempt } from '../support/model-attempt.ts';
import { admission, bindModel, setBudget, spend } from '../support/models.ts';

describe('what an admin sees of people and money', () => {
  const database = useDatabase();
  let listener: HttpListener;
  let opsUrl: string;
  let person: Person;
  let slug: string;

  beforeEach(async () => {
    const { db } = database;
    await emptyLedger(db);
    await run(db, sql.unsafe`truncate llm_spend, llm_budget`);
    await bindModel(db, { price: { kind: 'PRICED', input: '2', output: '10' } });
    person = await makePerson(db);
    slug = await slugOf(person.workspaceId);
    const parts = { parts: [], started: () => true, metrics: createMetrics(), actors: () => [], connectionsMax: 50, log: silentLog };
    listener = createOpsListener({ ...parts, members: new MemberAdmin(db), adminGuard: requireLocalAdmin });
    opsUrl = `http://127.0.0.1:${await listener.start('127.0.0.1', 0)}`;
  });
  afterEach(() => listener.stop(1_000));

  async function slugOf(workspaceId: string): Promise<string> {
    const [row] = await run(database.db, sql.unsafe`select slug from workspace where id = ${workspaceId}`);
    return String(row?.['slug']);
  }

  /** Runs `heph …` and returns its exit code and what it said. */
  async function heph(line: string): Promise<{ code: number; said: string }> {
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    return { code: await runAdminCommand(line.split(' '), { opsUrl, readInput: async () => '', out: say, err: say }), said };
  }

  async function done(line: string): Promise<string> {
    const { code, said } = await heph(line);
    expect(code, said).to.equal(0);
    return said;
  }

  /** What a table says, cell by cell. */
  const cells = (said: string) =>
    said
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/));

  it('switches AI off and on for a member, in one workspace or in all', async () => {
    const { accountId } = person;
    await done(`member ai ${accountId} off --workspace ${slug}`);
    expect(await admission(database.db, person)).to.deep.equal({ refusal: 'AI_CHOICE' });
    await done(`member ai ${accountId} on`);
    expect(await admission(database.db, person)).to.include({ model: 'environment' });
  });

  it('refuses members, workspaces, months and turns that are none, and says where to look', async () => {
    for (const [line, code, words] of [
      [`member ai ${uuidv7()} off`, 1, /no member/],
      ['member ai ada off', 1, /no member/],
      [`member ai ${person.accountId} off --workspace nobodys`, 1, /no workspace/],
      [`member ai ${person.accountId} maybe`, 2, /on or off/],
      ['usage --month 2026-13', 1, /month/],
      ['usage --workspace nobodys', 1, /no workspace/],
      ['calls', 2, /--turn is missing/],
      ['calls --turn it', 1, /id/],
    ] as const) {
      const { code: exit, said } = await heph(line);
      expect([exit, said.split('\n')[0]], line).to.satisfy(([seen, first]: [number, string]) => seen === code && words.test(first));
    }
    for (const words of ['member ai', 'member list', 'usage', 'calls']) expect(adminHelp()).to.include(`heph ${words}`);
  });

  async function opened(attempt: SeededAttempt) {
    const callId = uuidv7<'call'>();
    const { runId, epoch, sandbox } = attempt;
    const call = { callId, hostId: uuidv7<'host'>(), runId, epoch, ...sandbox, api: 'openai-completions', callsMax: 40 } as const;
    expect(await openCall(database.db, call)).to.include({ kind: 'opened' });
    return callId;
  }

  it('lists the calls of a turn with what each cost, those of unknown cost marked, and no word of anybody', async () => {
    const { db } = database;
    const attempt = await seedAttempt(db);
    await opened(attempt);
    await closeUnknownCalls(db, { openMs: 0, overMs: 0 }, 10);
    const callId = await opened(attempt);
    const tokens = { inputTokens: 1_000_000, outputTokens: 100_000, cacheReadTokens: null, cacheWriteTokens: null };
    await closeCalls(db, [{ callId, outcome: 'ok', httpStatus: 200, ...tokens }]);
    await opened(attempt);
    const calls = (await (await fetch(`${opsUrl}/admin/api/calls?turn=${attempt.turnId}`)).json()) as { calls: Record<string, unknown>[] };
    expect(calls.calls.map(({ attempt: nth, outcome, status, cost }) => [nth, outcome, status, cost])).to.deep.equal([
      [1, 'unknown', null, 'unknown'],
      [1, 'ok', 200, '3'],
      [1, 'open', null, null],
    ]);
    expect(calls.calls[1]).to.deep.include({
      ...{ id: callId, api: 'openai-completions', model: 'provider-model-9' },
      tokens: { input: 1_000_000, output: 100_000, cacheRead: null, cacheWrite: null },
    });
    expect(cells(await done(`calls --turn ${attempt.turnId}`))).to.have.length(4);
    expect(JSON.stringify(calls)).to.not.include('why?');
    expect(await done(`calls --turn ${uuidv7()}`)).to.equal('There are none.\n');
  });

  it('lists what each purse spent in a month beside its budget, and the calls of unknown cost', async () => {
    const { db } = database;
    const attempt = await seedAttempt(db);
    const other = await slugOf(attempt.sandbox.workspaceId);
    await setBudget(db, null, '100');
    await setBudget(db, person.workspaceId, '5.5');
    await spend(db, person.workspaceId, '1.25');
    await spend(db, attempt.sandbox.workspaceId, '2');
    await opened(attempt);
    await closeUnknownCalls(db, { openMs: 0, overMs: 0 }, 10);
    await opened(attempt);
    const [, ...rows] = cells(await done('usage'));
    const month = new Date().toISOString().slice(0, 7);
    expect(rows).to.have.deep.members([
      [month, '-', '100', '3.25', '2', '1'],
      [month, other, '-', '2', '2', '1'],
      [month, slug, '5.5', '1.25', '0', '0'],
    ]);
    expect(cells(await done(`usage --workspace ${slug}`)).slice(1)).to.deep.equal([[month, slug, '5.5', '1.25', '0', '0']]);
    expect(cells(await done('usage --month 2020-02')).slice(1)).to.have.deep.members([
      ['2020-02', '-', '100', '0', '0', '0'],
      ['2020-02', slug, '5.5', '0', '0', '0'],
    ]);
  });

  it('is for this machine only', async () => {
    for (const path of ['usage', `calls?turn=${uuidv7()}`]) {
      const answer = await fetch(`${opsUrl}/admin/api/${path}`, { headers: { 'sec-fetch-site': 'cross-site' } });
      expect(answer.status, path).to.equal(403);
    }
  });
});
