/**
 * A command in a sandbox can read its credential: it is worth nothing for another subject, another workspace, another run, another epoch, and
 * nothing at all once the sandbox was replaced. Asked of every call of the agent wire.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { ContextDesk } from '../../src/context/desk.ts';
import { ContextRegistry } from '../../src/context/registry.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';

type Claimed = { readonly id: string; readonly epoch: number };

const ENTRY = {
  type: 'message',
  id: 'a1',
  parentId: null,
  timestamp: '2026-01-01T00:00:00.000Z',
  message: { role: 'assistant', content: [] },
};
/** Every call of a run, with a body that is right. */
const CALLS: Readonly<Record<string, object | undefined>> = {
  context: undefined,
  lease: {},
  'turn/partial': { offset: 0, text: 'stolen', stage: null },
  'turn/search': { query: 'iron', scope: 'tree' },
  'turn/sandbox/document': { path: 'inputs/context/issue/1.json' },
  'turn/sandbox/load': { path: 'repos/anvil' },
  'turn/end': { outcome: 'DONE', entries: [ENTRY], lastPartial: null },
  end: { outcome: 'COMPLETED' },
};

describe('the credential of a sandbox', () => {
  // rule: R5
  const database = useDatabase();
  const openRig = useRigs(database);
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 8);
  });

  /** Items are asked for where a server has them; the statement of the real gateway is asked in gateway-refusals.spec.ts. */
  function open(options: Parameters<typeof openRig>[0] = {}): Promise<HttpRig> {
    const { db } = database;
    const registry = new ContextRegistry({ sources: [], loaders: [], log: silentLog });
    return openRig({ ...options, items: new ContextDesk({ db, registry, clock: systemClock, log: silentLog }) });
  }

  async function running(rig: HttpRig) {
    const { body } = await rig.ask('Why?');
    const sandbox = await rig.sandbox(body.turn.conversationId);
    const { body: pulled } = await sandbox.next(5_000);
    return { rig, sandbox, turnId: body.turn.id as string, run: pulled.run as Claimed };
  }

  type Running = Awaited<ReturnType<typeof running>>;

  /** What each call of the wire answers to this credential and this run. */
  async function answers({ sandbox }: Running, of: Claimed): Promise<Record<string, string>> {
    const said: Record<string, string> = {};
    for (const [name, body] of Object.entries(CALLS)) {
      const { status, body: problem } = await sandbox.call(of, name, body);
      said[name] = `${status} ${problem?.code ?? ''}`.trim();
    }
    const headers = { 'x-agent-run': of.id, 'x-agent-epoch': String(of.epoch) };
    const { status, body } = await sandbox.send('POST', '/internal/llm/v1/chat/completions', { body: {}, headers });
    said['model call'] = `${status} ${body?.code ?? ''}`.trim();
    return said;
  }

  const all = (answer: string) => Object.fromEntries([...Object.keys(CALLS), 'model call'].map((name) => [name, answer]));

  /** Nothing of it was touched, and it goes on. */
  async function isUntouched({ sandbox, run: claimed, rig, turnId }: Running): Promise<void> {
    expect((await sandbox.call(claimed, 'lease', {})).status).to.equal(200);
    await sandbox.answer(claimed, 'My own words.');
    expect((await rig.send('GET', `turns/${turnId}`)).body).to.include({ status: 'DONE', attempt: 1 });
    const rows = await run(database.db, sql.unsafe`select count(*)::int as stolen from mentor_entry where text like '%stolen%'`);
    expect(rows).to.deep.equal([{ stolen: 0 }]);
  }

  it('is refused by every call for the run of another conversation, in its own workspace and in another', async () => {
    const mine = await running(await open());
    const theirs = await running(await open({ person: await makePerson(database.db) }));
    expect(await answers(mine, theirs.run)).to.deep.equal(all('401 SANDBOX_UNKNOWN'));
    expect(await answers(theirs, mine.run)).to.deep.equal(all('401 SANDBOX_UNKNOWN'));
    await isUntouched(mine);
    await isUntouched(theirs);
  });

  it('is refused by every call for an older and a later epoch of its own run, and for a run that nobody has', async () => {
    const mine = await running(await open());
    const lost = all('409 MENTOR_LEASE_LOST');
    for (const epoch of [mine.run.epoch - 1, mine.run.epoch + 1]) {
      expect(await answers(mine, { ...mine.run, epoch }), `epoch ${epoch}`).to.deep.equal(lost);
    }
    expect(await answers(mine, { id: uuidv7(), epoch: 1 })).to.deep.equal(lost);
    await isUntouched(mine);
  });

  it('is worth nothing once its sandbox was replaced: every call is refused, also for the next epoch of the run that it had', async () => {
    const rig = await open();
    const old = await running(rig);
    await run(
      database.db,
      sql.unsafe`update sandbox set state = 'ENDED', ended_at = clock_timestamp() where state <> 'ENDED' returning id`,
    );
    expect(await answers(old, old.run)).to.deep.equal(all('401 SANDBOX_UNKNOWN'));
    expect((await old.sandbox.next(0)).status).to.equal(401);
    await rig.actors.reap();
    const rows = await run(database.db, sql.unsafe`select status, attempt from mentor_turn`);
    expect(rows, 'what it held is taken back').to.deep.equal([{ status: 'QUEUED', attempt: 1 }]);
    expect(await answers(old, { ...old.run, epoch: old.run.epoch + 1 })).to.deep.equal(all('401 SANDBOX_UNKNOWN'));
  });
});
