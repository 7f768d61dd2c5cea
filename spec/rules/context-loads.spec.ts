/**
 * Loads over the agent wire: how many an attempt gets, how many a server prepares at once, and everything that ends one early.
 */
import { once } from 'node:events';
import http from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { ContextDesk } from '../../src/context/desk.ts';
import { Permits } from '../../src/context/permits.ts';
import { ContextRegistry } from '../../src/context/registry.ts';
import { LOAD_HEADER } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SlowLoader } from '../support/slow-loader.ts';

describe('the permits of loads', () => {
  it('let so many wait as they were told, and not one more', async () => {
    const permits = new Permits(1, 2);
    const never = new AbortController().signal;
    const release = await permits.take(never);
    expect(permits.hasRoom).to.equal(true);
    const order: string[] = [];
    const first = permits.take(never).finally(() => order.push('first'));
    expect(permits.hasRoom).to.equal(true);
    const gone = new AbortController();
    const second = permits.take(gone.signal).catch(() => order.push('gone'));
    expect([permits.hasRoom, permits.waiting]).to.deep.equal([false, 2]);
    gone.abort();
    await second;
    expect(permits.hasRoom).to.equal(true);
    const third = permits.take(never).finally(() => order.push('third'));
    release();
    release(); // a second time frees nothing
    (await first)();
    (await third)();
    expect([order, permits.waiting]).to.deep.equal([['gone', 'first', 'third'], 0]);
  });
});

describe('a load', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  let loader: SlowLoader;
  let desk: ContextDesk;
  let clock: ManualClock;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 40);
    loader = new SlowLoader();
    clock = new ManualClock();
    const registry = new ContextRegistry({ sources: [], loaders: [loader], log: silentLog });
    desk = new ContextDesk({ db: database.db, registry, clock, log: silentLog });
    rig = await openRig({ items: desk });
  });

  async function running(of: HttpRig = rig) {
    const { body } = await of.ask('Why?');
    const sandbox = await of.sandbox(body.turn.conversationId);
    const pulled = await sandbox.next(5_000);
    const claim = pulled.body.run as { id: string; epoch: number };
    const load = (path = 'slow/x', at = claim) => sandbox.call(at, 'turn/sandbox/load', { path });
    return { sandbox, turn: body.turn, claim, load };
  }
  /** Of another person; one after the other, because any server may start a sandbox for a question that waits. */
  const runningElsewhere = async () => running(await openRig({ items: desk, person: await makePerson(database.db) }));
  type Running = Awaited<ReturnType<typeof running>>;

  /** A load whose client sees each byte and can go. */
  function raw({ sandbox, claim }: Running) {
    const headers = { authorization: `Bearer ${sandbox.credential}`, 'x-agent-run': claim.id, 'x-agent-epoch': String(claim.epoch) };
    const request = http.request({
      ...{ port: rig.agentPort, host: '127.0.0.1', method: 'POST', path: `/internal/agent/runs/${claim.id}/turn/sandbox/load` },
      headers: { ...headers, 'content-type': 'application/json' },
    });
    request.on('error', () => {}); // the spec hangs up
    request.end(JSON.stringify({ path: 'slow/x' }));
    return request;
  }

  const problem = async (answer: Promise<{ status: number; body: { code: string; stop?: string; detail: string } }>) => {
    const { status, body } = await answer;
    return [status, body.code, ...(body.stop ? [body.stop] : [])];
  };
  const loads = async () => (await run(database.db, sql.unsafe`select tools_loads, tools_loads_epoch from mentor_turn`))[0];
  const idle = () => until('no load is left', () => desk.loads === 0 && clock.timers === 0);

  it('comes as an archive with its manifest ahead of it', async () => {
    const turn = await running();
    const answer = turn.load('slow/a@b/c');
    await loader.reach(1);
    expect(loader.held[0]?.path).to.equal('slow/a@b/c');
    loader.held[0]?.go(5).end('hello');
    const { status, headers, text } = await answer;
    expect([status, headers.get('content-type'), headers.get('content-length'), text]).to.deep.equal([
      200,
      'application/x-tar',
      '5',
      'hello',
    ]);
    const manifest = JSON.parse(Buffer.from(headers.get(LOAD_HEADER) ?? '', 'base64url').toString('utf8'));
    expect(manifest).to.deep.equal({ directory: 'slow/x', version: '1', bytes: 5, sha256: 'a'.repeat(64), summary: null });
    await idle();
  });

  it('is a 404 where no loader is, whatever the path says, and costs nothing', async () => {
    const turn = await running();
    for (const path of [
      'repos/x',
      'slow',
      'slow/',
      'slow/../x',
      '../slow/x',
      '/slow/x',
      'slow//x',
      './slow/x',
      'slow/a\u0000',
      'inputs/context/user.json',
    ])
      expect(await problem(turn.load(path)), path).to.deep.equal([404, 'DOCUMENT_NOT_FOUND']);
    expect(await loads()).to.include({ tools_loads: 0 });
  });

  it('is given five times to an attempt, and the sixth time refused in words for the model', async () => {
    const turn = await running();
    for (let n = 1; n <= LIMITS.loadsPerAttemptMax; n++) {
      const answer = turn.load();
      await loader.reach(1);
      loader.held[0]?.go(0).end();
      expect((await answer).status, String(n)).to.equal(200);
    }
    const sixth = await turn.load();
    expect([sixth.status, sixth.body.code]).to.deep.equal([422, 'LOAD_REFUSED']);
    expect(sixth.body.detail).to.equal(
      'This turn has loaded 5 times, which is the limit. Work with what is loaded, or tell the developer.',
    );
    expect(await loads()).to.deep.equal({ tools_loads: 5, tools_loads_epoch: 1 });
  });

  it('is counted once for each call, also when all come at the same moment', async () => {
    const turn = await running();
    const answers = Array.from({ length: 8 }, () => turn.load());
    let served = 0;
    for (; served < LIMITS.loadsPerAttemptMax; served++) {
      await until('a load is being prepared', () => loader.held.length > 0);
      loader.held[0]?.go(0).end();
    }
    const statuses = (await Promise.all(answers)).map(({ status }) => status).sort();
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 422, 422, 422]);
  });

  it('is given five times anew to the next attempt', async () => {
    const turn = await running();
    await run(database.db, sql.unsafe`update mentor_turn set tools_loads = 5, tools_loads_epoch = 1 returning id`);
    expect(await problem(turn.load())).to.deep.equal([422, 'LOAD_REFUSED']);
    expect((await turn.sandbox.call(turn.claim, 'end', { outcome: 'HANDED_ON' })).status).to.equal(204);
    const { body } = await turn.sandbox.next(5_000);
    expect(body.run.epoch).to.equal(2);
    expect(await problem(turn.load('slow/x', turn.claim))).to.deep.equal([409, 'MENTOR_LEASE_LOST']);
    const answer = turn.load('slow/x', body.run);
    await loader.reach(1);
    loader.held[0]?.go(0).end();
    expect((await answer).status).to.equal(200);
    expect(await loads()).to.deep.equal({ tools_loads: 1, tools_loads_epoch: 2 });
  });

  it('waits while the server prepares two others, and begins when one of them is through', async () => {
    const turns = [await runningElsewhere(), await runningElsewhere(), await runningElsewhere()];
    const [first, second] = turns.slice(0, LIMITS.loadsAtOnceMax).map((turn) => turn.load());
    await loader.reach(2);
    const third = turns[2]?.load('slow/third');
    await until('the third is counted and waits', () => desk.waiting === 1);
    expect(loader.held).to.have.length(2);
    const body = loader.held[0]?.go(5);
    await until('the third is being prepared while the first is still sent', () => loader.held.some(({ path }) => path === 'slow/third'));
    body?.end('hello');
    for (const held of [...loader.held]) held.go(0).end();
    expect((await Promise.all([first, second, third])).map((answer) => answer?.status)).to.deep.equal([200, 200, 200]);
    await idle();
  });

  it('that waits gives its place up when its client goes', async () => {
    const turns = [await runningElsewhere(), await runningElsewhere()];
    const answers = turns.map((turn) => turn.load());
    await loader.reach(2);
    const request = raw(await running());
    await until('the third waits', () => desk.waiting === 1);
    request.destroy();
    await until('nobody waits', () => desk.waiting === 0);
    for (const held of [...loader.held]) held.go(0).end();
    await Promise.all(answers);
    await idle();
    expect(loader.held).to.have.length(0);
  });

  it('ends when its client goes, while it is prepared and while it is sent', async () => {
    const turn = await running();
    const preparing = raw(turn);
    await loader.reach(1);
    const signal = loader.held[0]?.signal;
    preparing.destroy();
    await loader.reach(0);
    expect(signal?.aborted).to.equal(true);
    await idle();
    const sending = raw(turn);
    await loader.reach(1);
    const body = loader.held[0]?.go(1_000_000);
    body?.write('begin');
    await once(sending, 'response');
    sending.destroy();
    await until('the archive is let go', () => body?.destroyed === true);
    await idle();
  });

  it('ends when the turn is stopped: told by this server, or seen in the database', async () => {
    for (const told of [true, false]) {
      const turn = await running();
      const answer = problem(turn.load());
      await loader.reach(1);
      await rig.send('PATCH', `turns/${turn.turn.id}/status`, { body: { status: 'STOPPED' } });
      if (told) desk.seal([turn.claim.id]);
      else clock.advance(1_000);
      expect(await answer).to.deep.equal([409, 'MENTOR_TURN_STOPPED', 'developer']);
      await idle();
      await turn.sandbox.call(turn.claim, 'turn/end', { outcome: 'STOPPED', entries: [], lastPartial: null });
    }
  });

  it('ends at the deadline of its turn, and is not begun after it', async () => {
    const turn = await running();
    const answer = problem(turn.load());
    await loader.reach(1);
    clock.advance(900_000);
    expect(await answer).to.deep.equal([409, 'MENTOR_TURN_STOPPED', 'deadline']);
    await run(database.db, sql.unsafe`update agent_run set deadline_at = now() - interval '1 ms' returning id`);
    expect(await problem(turn.load())).to.deep.equal([409, 'MENTOR_TURN_STOPPED', 'deadline']);
    expect(await loads()).to.include({ tools_loads: 1 });
    await idle();
  });

  it('that is cut off while it is sent does not look whole', async () => {
    const turn = await running();
    const request = raw(turn);
    await loader.reach(1);
    loader.held[0]?.go(1_000_000).write('begin');
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const read = readText(response).then(
      () => 'whole',
      (error: NodeJS.ErrnoException) => error.code,
    );
    desk.seal([turn.claim.id]);
    expect(await read).to.equal('ECONNRESET');
    await idle();
  });

  it('that fails by our fault is a 500 without words, and frees its place', async () => {
    const turn = await running();
    for (let n = 0; n <= LIMITS.loadsAtOnceMax; n++) {
      const answer = problem(turn.load());
      await loader.reach(1);
      loader.held[0]?.fail(new Error('a path of this machine'));
      expect(await answer).to.deep.equal([500, 'INTERNAL']);
    }
    await idle();
  });

  it('is refused to a member who was removed', async () => {
    const turn = await running();
    await run(database.db, sql.unsafe`update workspace_member set active = false where account_id = ${rig.person.accountId} returning 1`);
    expect(await problem(turn.load())).to.deep.equal([404, 'DOCUMENT_NOT_FOUND']);
  });
});
