/**
 * Billing: each model call is billed once, at the price that was frozen with the turn's admission, whatever dies. rule: R15
 */
import { expect } from 'chai';
import { z } from 'zod';
import { type CallClosing, closeCalls, closeUnknownCalls } from '../../db/gateway/close-calls.ts';
import { openCall } from '../../db/gateway/open-call.ts';
import { endHost } from '../../db/ledger/sandboxes.ts';
import { type EnvironmentPrice, writeEnvironmentModel } from '../../db/models/environment.ts';
import { sql } from '../../db/pool.ts';
import { type CallId, uuidv7 } from '../../src/kernel/ids.ts';
import { makeHost } from '../support/ledger.ts';
import { nextAttempt, type SeededAttempt, seedAttempt, usageRows } from '../support/model-attempt.ts';
import { readBody, settled, until, useGateway } from '../support/model-gateway.ts';
import { hold, says } from '../support/model-server.ts';
import { admission, bindModel, SPEC_MODEL, setBudget } from '../support/models.ts';

const PRICED: EnvironmentPrice = { kind: 'PRICED', input: '2.5', output: '10' };
const question = { stream: true, messages: [{ role: 'user', content: 'why?' }] };
const OK = { outcome: 'ok', httpStatus: 200 } as const;

describe('billing', () => {
  const suite = useGateway();

  /** An attempt at this price, with one call opened. */
  async function opened(price: EnvironmentPrice = PRICED): Promise<{ attempt: SeededAttempt; callId: CallId }> {
    await bindModel(suite.db, { price });
    const attempt = await seedAttempt(suite.db);
    return { attempt, callId: await openOne(attempt) };
  }

  async function openOne(attempt: SeededAttempt, hostId = uuidv7<'host'>()): Promise<CallId> {
    const callId = uuidv7<'call'>();
    const names = { callId, hostId, runId: attempt.runId, epoch: attempt.epoch, ...attempt.sandbox, callsMax: 40 };
    expect(await openCall(suite.db, { ...names, api: 'openai-completions' })).to.include({ kind: 'opened' });
    return callId;
  }

  function closing(callId: CallId, tokens: readonly (number | null)[], how: Pick<CallClosing, 'outcome' | 'httpStatus'> = OK): CallClosing {
    const [inputTokens = null, outputTokens = null, cacheReadTokens = null, cacheWriteTokens = null] = tokens;
    return { callId, ...how, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens };
  }

  async function spent(attempt: SeededAttempt): Promise<string | null> {
    const row = await suite.db.one(sql.type(z.object({ cost: z.string().nullable() }))`
      select trim_scale(sum(cost))::text as cost from llm_spend where workspace_id = ${attempt.sandbox.workspaceId}`);
    return row.cost;
  }

  const costOf = async (attempt: SeededAttempt) => (await usageRows(suite.db, attempt)).map(({ cost }) => cost && String(Number(cost)));

  it('prices the tokens of a call per million, cached ones like input when they have no price', async () => {
    const { attempt, callId } = await opened();
    await closeCalls(suite.db, [closing(callId, [1_000, 100, 3_000, 1])]);
    expect(await costOf(attempt)).to.deep.equal(['0.0110025']);
    expect(await spent(attempt)).to.equal('0.0110025');
  });

  it('adds up a day of small calls without rounding', async () => {
    const { attempt, callId } = await opened({ kind: 'PRICED', input: '0.000001', output: '0.1' });
    const calls = [callId];
    for (let n = 1; n < 10; n++) calls.push(await openOne(attempt));
    await closeCalls(
      suite.db,
      calls.map((id) => closing(id, [1, 1])),
    );
    expect(await spent(attempt)).to.equal('0.00000100001');
  });

  it('keeps the price that was frozen, when an operator changes it in the middle of the turn', async () => {
    const { attempt, callId } = await opened();
    await bindModel(suite.db, { price: { kind: 'PRICED', input: '1000', output: '1000' }, providerModel: 'another' });
    const later = await openOne(attempt);
    await closeCalls(suite.db, [closing(callId, [1_000_000]), closing(later, [1_000_000])]);
    expect(await costOf(attempt)).to.deep.equal(['2.5', '2.5']);
    expect((await usageRows(suite.db, attempt)).map(({ model }) => model)).to.deep.equal(['provider-model-9', 'provider-model-9']);
  });

  it('bills a call once, however often and by whomever it is closed', async () => {
    const { attempt, callId } = await opened();
    const close = () => closeCalls(suite.db, [closing(callId, [1_000_000])]);
    const closed = await Promise.all([close(), close(), close()]);
    expect(await close()).to.equal(0);
    const rows = await usageRows(suite.db, attempt);
    expect(rows).to.have.length(1);
    expect(closed.reduce((sum, count) => sum + count, 0)).to.equal(1);
    expect(await spent(attempt)).to.equal('2.5');
  });

  it('knows no cost where the provider told no tokens, and none is owed where it was never reached', async () => {
    const { attempt, callId } = await opened();
    const [refused, unreached] = [await openOne(attempt), await openOne(attempt)];
    await closeCalls(suite.db, [
      closing(callId, [], { outcome: 'sealed', httpStatus: 200 }),
      closing(refused, [], { outcome: 'provider_error', httpStatus: 400 }),
      closing(unreached, [], { outcome: 'unreachable', httpStatus: null }),
    ]);
    expect(await costOf(attempt)).to.deep.equal([null, '0', '0']);
    expect(await spent(attempt)).to.equal(null);
  });

  it('costs nothing where nothing is charged', async () => {
    const { attempt, callId } = await opened({ kind: 'NO_CHARGE', note: 'ours' });
    await closeCalls(suite.db, [closing(callId, [1_000_000])]);
    expect(await costOf(attempt)).to.deep.equal(['0']);
    expect(await spent(attempt)).to.equal(null);
  });

  it('refuses the next turn once the closed calls have cost the budget', async () => {
    const { attempt, callId } = await opened();
    const { workspaceId } = attempt.sandbox;
    await setBudget(suite.db, workspaceId, '2.5');
    const [member] = await suite.db.any(sql.type(z.object({ account_id: z.string() }))`
      select account_id from workspace_member where workspace_id = ${workspaceId}`);
    const person = { workspaceId, accountId: member?.account_id ?? '' };
    expect(await admission(suite.db, person), 'an open call counts as nothing').to.not.have.property('refusal');
    await closeCalls(suite.db, [closing(callId, [1_000_000])]);
    expect(await admission(suite.db, person)).to.deep.equal({ refusal: 'BUDGET' });
    expect(await openOne(attempt), 'a turn that was admitted goes on').to.be.a('string');
  });

  it('closes what a server that died left open as unknown, by the sweep of any other, and shows it', async () => {
    const { attempt, callId } = await opened();
    const { rig } = await suite.open();
    rig.gateway.start();
    await suite.db.any(sql.type(z.object({}))`
      update llm_usage_event set opened_at = opened_at - interval '19 min' where id = ${callId}`);
    await rig.clock.advanceAsync(60_000);
    expect(await usageRows(suite.db, attempt)).to.have.nested.property('[0].state', 'OPEN');
    await suite.db.any(sql.type(z.object({}))`
      update llm_usage_event set opened_at = opened_at - interval '2 min' where id = ${callId}`);
    await rig.clock.advanceAsync(60_000);
    await until('the sweep has told', () => rig.gateway.stats().ended.unknown === 1);
    expect(await usageRows(suite.db, attempt))
      .to.have.nested.property('[0]')
      .that.includes({ state: 'CLOSED', outcome: 'unknown', cost: null });
    expect(rig.lines).to.deep.include({ level: 'warn', event: 'model_calls_unknown', calls: 1 });
  });

  it('shows the calls of a dead server at once, leaves those of a living one alone, and takes back what a lost attempt left open', async () => {
    const sweep = () => closeUnknownCalls(suite.db, { openMs: 1_200_000, overMs: 120_000 }, 100);
    const { attempt } = await opened();
    const older = (ms: number) =>
      suite.db.any(
        sql.type(z.object({}))`update llm_usage_event set opened_at = opened_at - ${ms}::int * interval '1 ms' where state = 'OPEN'`,
      );
    const [dead, living] = [await makeHost(suite.db), await makeHost(suite.db)];
    const [lost, streaming] = [await openOne(attempt, dead), await openOne(attempt, living)];
    expect(await sweep()).to.equal(0);
    await endHost(suite.db, dead);
    expect(await sweep()).to.equal(1);
    const states = async () =>
      Object.fromEntries((await usageRows(suite.db, attempt)).map(({ id, state, outcome }) => [id, outcome ?? state]));
    expect(await states()).to.include({ [lost]: 'unknown', [streaming]: 'OPEN' });
    await nextAttempt(suite.db, attempt); // taken back and claimed again
    await older(119_000);
    expect(await sweep(), 'its server may still be telling').to.equal(0);
    await older(2_000);
    expect(await sweep()).to.equal(2);
    expect(await states()).to.include({ [streaming]: 'unknown' });
  });

  it('bills a call once whose server tells its end although it was taken for dead', async () => {
    await closeUnknownCalls(suite.db, { openMs: 0, overMs: 0 }, 100); // what other tests left open
    const { attempt, callId } = await opened();
    expect(await closeUnknownCalls(suite.db, { openMs: 0, overMs: 0 }, 100)).to.equal(1);
    expect(await spent(attempt)).to.equal(null);
    const end = closing(callId, [1_000_000]);
    const both = await Promise.all([closeCalls(suite.db, [end]), closeCalls(suite.db, [end])]);
    expect(both[0] + both[1]).to.equal(1);
    expect(await closeCalls(suite.db, [closing(callId, [9_000_000])]), 'a third time').to.equal(0);
    expect(await closeUnknownCalls(suite.db, { openMs: 0, overMs: 0 }, 100)).to.equal(0);
    expect(await costOf(attempt)).to.deep.equal(['2.5']);
    expect(await spent(attempt)).to.equal('2.5');
    expect(await usageRows(suite.db, attempt)).to.have.nested.property('[0].outcome', 'ok');
  });

  it('answers with the model of the admission, also when another one is bound before the call', async () => {
    const atProvider = hold();
    suite.provider.use(() => ({ before: atProvider, reply: says('because', { usage: { input: 1_000, output: 100 } }) }));
    const { rig, attempt } = await suite.open();
    await writeEnvironmentModel(suite.db, { ...SPEC_MODEL, baseUrl: suite.provider.url, providerModel: 'another', price: PRICED });
    const n = suite.provider.seen.length + 1;
    const response = rig.call(attempt, question);
    expect((await suite.provider.request(n)).body.model).to.equal('provider-model-9');
    await atProvider.arrived;
    atProvider.release();
    await readBody(await response);
    await settled(rig);
    expect(await usageRows(suite.db, attempt))
      .to.have.nested.property('[0]')
      .that.includes({ price_kind: 'NO_CHARGE', model: 'provider-model-9' });
  });

  it('never asks the provider of this server for the model of another one', async () => {
    const { rig } = await suite.open();
    await bindModel(suite.db, { providerModel: 'of-another-server' });
    const attempt = await seedAttempt(suite.db);
    const n = suite.provider.seen.length;
    const response = await rig.call(attempt, question);
    expect([response.status, (await response.json()).code]).to.deep.equal([503, 'NO_MODEL']);
    expect(suite.provider.seen.length).to.equal(n);
    await settled(rig);
    expect(await usageRows(suite.db, attempt)).to.have.nested.property('[0].outcome', 'unreachable');
  });
});
