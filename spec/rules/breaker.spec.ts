/**
 * The breaker of a connection: a provider that does not answer is left alone for a while, by every server. rule: R8
 */
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import { Breaker } from '../../src/gateway/breaker.ts';
import { Breakers, verdictOf } from '../../src/gateway/breakers.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { makePerson } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type SeededAttempt, usageRows } from '../support/model-attempt.ts';
import { type GatewayRig, readBody, settled, until, useGateway } from '../support/model-gateway.ts';
import { hold, says } from '../support/model-server.ts';
import { admission } from '../support/models.ts';

const BOUNDS = { failuresMax: 5, windowMs: 60_000, pauseMs: 30_000 };

describe('a breaker', () => {
  let breaker: Breaker;
  beforeEach(() => {
    breaker = new Breaker(BOUNDS);
  });
  const fail = (count: number, nowMs: number) => Array.from({ length: count }, () => breaker.ended('call', 'failure', nowMs)).at(-1);

  it('opens at the fifth failure within 60 s, not at the fourth', () => {
    expect([fail(4, 0), breaker.state(0), breaker.enter(0)]).to.deep.equal([null, 'closed', 'call']);
    expect([fail(1, 59_999), breaker.state(59_999), breaker.enter(59_999)]).to.deep.equal(['opened', 'open', 'paused']);
  });

  it('forgets failures that are older than 60 s', () => {
    fail(4, 0);
    expect(fail(1, 60_000)).to.equal(null);
    expect(fail(3, 60_001)).to.equal(null);
    expect(fail(1, 60_001)).to.equal('opened');
  });

  it('stays closed while most calls succeed', () => {
    for (let n = 0; n < 6; n++) breaker.ended('call', 'success', 0);
    expect(fail(5, 0)).to.equal(null);
    expect(fail(1, 0)).to.equal('opened');
  });

  it('lets one probe through after 30 s, and the rest waits for it', () => {
    fail(5, 0);
    expect([breaker.enter(29_999), breaker.enter(30_000), breaker.enter(30_000)]).to.deep.equal(['paused', 'probe', 'paused']);
    expect(breaker.state(30_000)).to.equal('half-open');
    expect([breaker.ended('probe', 'success', 30_001), breaker.enter(30_001)]).to.deep.equal(['closed', 'call']);
    expect(fail(4, 30_002), 'it begins anew').to.equal(null);
  });

  it('opens for 30 s again when the probe fails', () => {
    fail(5, 0);
    breaker.enter(30_000);
    expect(breaker.ended('probe', 'failure', 31_000)).to.equal('opened');
    expect([breaker.enter(60_999), breaker.enter(61_000)]).to.deep.equal(['paused', 'probe']);
  });

  it('sends the next call as a probe when the last one was cut by us', () => {
    fail(5, 0);
    breaker.enter(30_000);
    expect([breaker.ended('probe', 'nothing', 30_001), breaker.enter(30_001)]).to.deep.equal([null, 'probe']);
  });

  it('hears nothing about now from calls of before the pause', () => {
    fail(5, 0);
    breaker.ended('call', 'success', 1);
    expect([breaker.state(1), fail(1, 29_999), breaker.enter(30_000)]).to.deep.equal(['open', null, 'probe']);
  });

  it('counts connect errors, stalls and 5xx as failures, and no 4xx and nothing that we cut', () => {
    for (const [outcome, status] of [
      ['unreachable', null],
      ['stalled', null],
      ['stalled', 200],
      ['provider_error', 500],
      ['provider_error', 529],
    ] as const)
      expect(verdictOf(outcome, status), `${outcome} ${status}`).to.equal('failure');
    for (const [outcome, status] of [
      ['ok', 200],
      ['provider_error', 400],
      ['provider_error', 401],
      ['provider_error', 429],
    ] as const)
      expect(verdictOf(outcome, status), `${outcome} ${status}`).to.equal('success');
    for (const outcome of ['aborted', 'sealed', 'draining', 'truncated'] as const)
      expect(verdictOf(outcome, 200), outcome).to.equal('nothing');
  });
});

describe('the breaker of a connection', () => {
  const suite = useGateway();
  const question = { stream: true, messages: [{ role: 'user', content: 'why?' }] };
  let rig: GatewayRig;
  let attempt: SeededAttempt;
  afterEach(() => suite.db.any(sql.type(z.object({}))`update llm_connection set paused_until = null`));

  const refusalNow = async () => (await admission(suite.db, await makePerson(suite.db)))['refusal'];

  async function openBreaker(): Promise<void> {
    ({ rig, attempt } = await suite.open());
    suite.provider.use(() => ({ status: 503, body: { error: { message: 'overloaded' } } }));
    for (let n = 0; n < 5; n++) expect((await rig.call(attempt, question)).status).to.equal(503);
    await settled(rig);
    await until('admission of every server refuses', async () => (await refusalNow()) === 'MODEL_PAUSED');
  }

  it('refuses calls with upstream_paused before any byte, and keeps every server from admitting turns', async () => {
    await openBreaker();
    const n = suite.provider.seen.length;
    const response = await rig.call(attempt, question);
    expect([response.status, response.headers.get('retry-after')]).to.deep.equal([503, '30']);
    expect(await response.json())
      .to.deep.include({ code: 'UPSTREAM_PAUSED', retry: 'later' })
      .and.to.have.nested.property('error.code', 'upstream_paused');
    await settled(rig);
    expect(suite.provider.seen.length, 'nothing was sent').to.equal(n);
    expect((await usageRows(suite.db, attempt)).at(-1)).to.include({ outcome: 'paused', http_status: null, cost: '0' });
    const [row] = await suite.db.any(sql.type(z.object({ left_s: z.number() }))`
      select extract(epoch from paused_until - clock_timestamp())::float as left_s from llm_connection where name = 'environment'`);
    expect(row?.left_s).to.be.within(1, 30);
    expect(rig.gateway.stats().connectionsPaused).to.equal(1);
    expect(rig.lines.map(({ event }) => event)).to.include('connection_paused');
  });

  it('closes with the first answer after the pause, and turns are admitted again', async () => {
    await openBreaker();
    const atProvider = hold();
    suite.provider.use(() => ({ before: atProvider, reply: says('because') }));
    rig.clock.advance(30_000);
    const probe = rig.call(attempt, question);
    await atProvider.arrived;
    expect((await rig.call(attempt, question)).status, 'one probe at a time').to.equal(503);
    expect(await refusalNow()).to.equal('MODEL_PAUSED');
    atProvider.release();
    await readBody(await probe);
    await until('turns are admitted again', async () => (await refusalNow()) === undefined);
    expect((await rig.call(attempt, question)).status).to.equal(200);
    expect(rig.gateway.stats().connectionsPaused).to.equal(0);
  });

  it('is not opened by answers that say no', async () => {
    ({ rig, attempt } = await suite.open());
    suite.provider.use(() => ({ status: 429, body: { error: { message: 'slow down' } } }));
    for (let n = 0; n < 6; n++) expect((await rig.call(attempt, question)).status).to.equal(429);
    await settled(rig);
    expect(rig.gateway.stats().connectionsPaused).to.equal(0);
    expect(await refusalNow()).to.equal(undefined);
  });

  it('pauses its own connection only', () => {
    const breakers = new Breakers({ db: suite.db, clock: new ManualClock(), log: silentLog });
    const [down, up] = [uuidv7(), uuidv7()];
    for (let n = 0; n < 5; n++) breakers.enter(down)?.ended('unreachable', null);
    expect([breakers.enter(down) === null, breakers.enter(up) === null, breakers.notClosed]).to.deep.equal([true, false, 1]);
  });
});
