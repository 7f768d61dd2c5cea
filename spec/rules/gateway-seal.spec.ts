/**
 * The LLM gateway, when an attempt is over: a call in flight ends at once, wherever the news comes from, and the calls of a newer attempt
 * live on. rule: R5  rule: R8  rule: R15
 * cases: C4, C6
 */
import { expect } from 'chai';
import type { Database } from '../../db/pool.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { nextAttempt, passDeadline, type SeededAttempt, seedAttempt, stopAttempt, usageRows } from '../support/model-attempt.ts';
import { type GatewayRig, readBody, readUntil, settled, until, useGateway } from '../support/model-gateway.ts';
import { hold, says, textSteps } from '../support/model-server.ts';

const question = { stream: true, messages: [{ role: 'user', content: 'why?' }] };

describe('a model call in flight', () => {
  const suite = useGateway();
  let rig: GatewayRig;
  let attempt: SeededAttempt;

  async function open(options: Parameters<typeof suite.open>[0] = {}): Promise<void> {
    ({ rig, attempt } = await suite.open(options));
  }

  /** A call whose answer has begun and goes on for ever. */
  async function startCall(of = attempt) {
    const n = suite.provider.seen.length + 1;
    suite.provider.use(() => ({ steps: textSteps('half an answer'), end: 'hang' }));
    const response = await rig.call(of, question);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await readUntil(reader, 'half');
    return { seen: await suite.provider.request(n), broken: async () => readToEnd(reader) };
  }

  async function rowOutcome(): Promise<string | null | undefined> {
    await settled(rig);
    return (await usageRows(suite.db, attempt)).at(-1)?.outcome;
  }

  /** The writing of a row is repeated after a pause when the database was away. */
  async function moveUntilWritten(): Promise<void> {
    await until('the row is written', () => {
      rig.clock.advance(250);
      return rig.gateway.stats().inFlight === 0 && rig.gateway.stats().closingsWaiting === 0;
    });
  }

  it('is closed at the provider when the sandbox hangs up', async () => {
    await open();
    const n = suite.provider.seen.length + 1;
    suite.provider.use(() => ({ steps: textSteps('half an answer'), end: 'hang' }));
    const loop = new AbortController();
    const response = await rig.call(attempt, question, { signal: loop.signal });
    await readUntil((response.body as ReadableStream<Uint8Array>).getReader(), 'half');
    loop.abort();
    await (await suite.provider.request(n)).aborted;
    expect(await rowOutcome()).to.equal('aborted');
  });

  it('is closed at the provider when the sandbox hangs up before the answer begins', async () => {
    await open();
    const n = suite.provider.seen.length + 1;
    suite.provider.use(() => ({ silent: 'hang' }));
    const loop = new AbortController();
    const response = rig.call(attempt, question, { signal: loop.signal }).catch(() => 'hung up');
    const seen = await suite.provider.request(n);
    loop.abort();
    expect(await response).to.equal('hung up');
    await seen.aborted;
    expect(await rowOutcome()).to.equal('aborted');
  });

  it('counts as complete when the loop hangs up after the last word of the model', async () => {
    await open();
    suite.provider.use(() => says('because', { end: 'linger' }));
    const loop = new AbortController();
    const response = await rig.call(attempt, question, { signal: loop.signal });
    await readUntil((response.body as ReadableStream<Uint8Array>).getReader(), '[DONE]');
    loop.abort();
    expect(await rowOutcome()).to.equal('ok');
    expect((await usageRows(suite.db, attempt))[0]).to.include({ input_tokens: 100, output_tokens: 10 });
  });

  it('ends at once when its person stops the turn, and its stream is broken', async () => {
    await open();
    const call = await startCall();
    await stopAttempt(suite.db, attempt);
    rig.gateway.seal([attempt.runId]);
    await call.seen.aborted;
    expect(await call.broken()).to.equal(true);
    expect(await rowOutcome()).to.equal('sealed');
  });

  it('is answered 409 with the reason when its answer has not begun', async () => {
    for (const [what, expected] of [
      [stopAttempt, { code: 'MENTOR_TURN_STOPPED', stop: 'developer' }],
      [passDeadline, { code: 'MENTOR_TURN_STOPPED', stop: 'deadline' }],
      [nextAttempt, { code: 'MENTOR_LEASE_LOST' }],
    ] as const) {
      await open();
      const n = suite.provider.seen.length + 1;
      suite.provider.use(() => ({ silent: 'hang' }));
      const response = rig.call(attempt, question);
      const seen = await suite.provider.request(n);
      await what(suite.db, attempt);
      rig.gateway.seal([attempt.runId]);
      expect((await response).status).to.equal(409);
      expect(await (await response).json()).to.include(expected);
      await seen.aborted;
      expect(await rowOutcome()).to.equal('sealed');
    }
  });

  it('ends at the next look at the database when the news of the stop was lost', async () => {
    await open();
    const call = await startCall();
    await stopAttempt(suite.db, attempt);
    rig.clock.advance(1_000);
    await call.seen.aborted;
    expect(await call.broken()).to.equal(true);
    expect(await rowOutcome()).to.equal('sealed');
  });

  it('ends at the next look at the database when its deadline passes', async () => {
    await open();
    const call = await startCall();
    rig.clock.advance(1_000);
    await passDeadline(suite.db, attempt);
    rig.clock.advance(1_000);
    await call.seen.aborted;
    expect(await rowOutcome()).to.equal('sealed');
  });

  it('goes on when late news names its run but means the attempt before it', async () => {
    await open();
    const lost = await startCall();
    const second = await nextAttempt(suite.db, attempt);
    const finish = hold();
    const n = suite.provider.seen.length + 1;
    suite.provider.use(() => ({ steps: [...textSteps('begun'), { hold: finish }, ...textSteps(' and done')] }));
    const response = rig.call(second, question);
    await suite.provider.request(n);
    await finish.arrived;
    rig.gateway.seal([attempt.runId]);
    await lost.seen.aborted;
    await until('the lost call has ended', () => rig.gateway.stats().inFlight === 1);
    finish.release();
    const { text, broken } = await readBody(await response);
    expect(broken).to.equal(false);
    expect(text).to.include('done');
    await settled(rig);
    expect((await usageRows(suite.db, attempt)).map(({ epoch, outcome }) => ({ epoch, outcome }))).to.deep.equal([
      { epoch: 1, outcome: 'sealed' },
      { epoch: 2, outcome: 'ok' },
    ]);
  });

  it('goes on when another turn is stopped', async () => {
    await open();
    const other = await seedAttempt(suite.db);
    const [call, otherCall] = [await startCall(), await startCall(other)];
    await stopAttempt(suite.db, other);
    rig.gateway.seal([other.runId, attempt.runId]);
    await otherCall.seen.aborted;
    rig.clock.advance(1_000);
    await until('the other call has ended', () => rig.gateway.stats().inFlight === 1);
    await stopAttempt(suite.db, attempt);
    rig.gateway.seal([attempt.runId]);
    await call.seen.aborted;
    expect(await rowOutcome()).to.equal('sealed');
    expect(rig.gateway.stats().ended).to.deep.equal({ sealed: 2 });
  });

  it('ends when news names its run and the database does not answer', async () => {
    const away = failingDatabase(suite.db);
    await open({ db: away.db });
    const call = await startCall();
    away.fail();
    rig.gateway.seal([attempt.runId]);
    await call.seen.aborted;
    away.heal();
    await moveUntilWritten();
    expect(await rowOutcome()).to.equal('sealed');
  });

  it('ends when news names its run and the database takes too long', async () => {
    const away = failingDatabase(suite.db);
    await open({ db: away.db });
    const call = await startCall();
    away.hang();
    rig.gateway.seal([attempt.runId]);
    rig.clock.advance(500);
    await call.seen.aborted;
    away.heal();
    expect(await rowOutcome()).to.equal('sealed');
  });

  it('goes on for the time of a lease when the database is away, and no longer', async () => {
    const away = failingDatabase(suite.db);
    await open({ db: away.db, bounds: { idleTimeoutMs: 600_000, noContentTimeoutMs: 600_000 } });
    const call = await startCall();
    away.fail();
    for (let second = 1; second <= 60; second++) await rig.clock.advanceAsync(1_000);
    expect(rig.gateway.stats().inFlight).to.equal(1);
    await rig.clock.advanceAsync(1_000);
    await call.seen.aborted;
    away.heal();
    await moveUntilWritten();
    expect(await rowOutcome()).to.equal('sealed');
  });
});

describe('a gateway that shuts down', () => {
  const suite = useGateway();

  it('refuses new calls, lets those in flight end, and has written their rows', async () => {
    const { rig, attempt } = await suite.open();
    const finish = hold();
    suite.provider.use(() => ({ steps: [...textSteps('begun'), { hold: finish }, ...textSteps(' and done')] }));
    const response = await rig.call(attempt, question);
    await finish.arrived;
    const drained = rig.gateway.drain(25_000);
    const refused = await rig.call(attempt, question);
    expect(refused.status).to.equal(503);
    expect(refused.headers.get('retry-after')).to.equal('1');
    expect(await refused.json()).to.include({ code: 'DRAINING', retry: 'later' });
    finish.release();
    expect(await readBody(await response)).to.include({ broken: false });
    await drained;
    expect((await usageRows(suite.db, attempt)).map((row) => row.outcome)).to.deep.equal(['ok']);
  });

  it('cuts what is still in flight when its time is over', async () => {
    const { rig, attempt } = await suite.open();
    suite.provider.use(() => ({ steps: textSteps('half'), end: 'hang' }));
    const response = await rig.call(attempt, question);
    const drained = rig.gateway.drain(25_000);
    rig.clock.advance(25_000);
    await drained;
    expect(await readBody(response)).to.include({ broken: true });
    expect((await usageRows(suite.db, attempt)).map((row) => row.outcome)).to.deep.equal(['draining']);
  });
});

/** True when the stream broke, false when it ended. */
async function readToEnd(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<boolean> {
  try {
    while (!(await reader.read()).done);
    return false;
  } catch {
    return true;
  }
}

/** The database, with faults: queries fail, or wait until it is healed. */
function failingDatabase(db: Database) {
  let mode: 'ok' | 'fail' | 'hang' = 'ok';
  let healed = Promise.withResolvers<void>();
  const query = async <T>(work: () => Promise<T>): Promise<T> => {
    if (mode === 'fail') throw new RuntimeFault('DATABASE_UNAVAILABLE', 'away', { retry: 'later' });
    if (mode === 'hang') await healed.promise;
    return work();
  };
  const wrapped: Database = {
    any: (q) => query(() => db.any(q)),
    one: (q) => query(() => db.one(q)),
    maybeOne: (q) => query(() => db.maybeOne(q)),
    transaction: (work) => query(() => db.transaction(work)),
    usage: () => db.usage(),
    close: () => db.close(),
  };
  return {
    db: wrapped,
    fail: () => {
      mode = 'fail';
    },
    hang: () => {
      mode = 'hang';
      healed = Promise.withResolvers<void>();
    },
    heal: () => {
      mode = 'ok';
      healed.resolve();
    },
  };
}
