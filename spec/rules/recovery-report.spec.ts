/**
 * What a starting server says it found and left, and that it is not ready while the rows say otherwise.
 */
import { expect } from 'chai';
import { takeBackLeases } from '../../db/ledger/reap.ts';
import { endSandbox } from '../../db/ledger/sandboxes.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import { sql } from '../../db/pool.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { recover } from '../../src/ops/index.ts';
import { differencesOf } from '../../src/ops/recovery.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { claimed, endDone } from '../support/scene.ts';

const TEXTS = { failed: { code: 'ERROR', text: 'x' }, deadline: { code: 'DEADLINE', text: 'x' } };

describe('the report of a start', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  const reap = async () => (await takeBackLeases(database.db, 100, TEXTS)).length;
  const start = (taking = reap) => recover({ db: database.db, log: silentLog, reap: taking });
  const sqlRun = (query: ReturnType<typeof sql.unsafe>) => run(database.db, query);

  it('says that nothing was running', async () => {
    const recovery = await start();
    expect(await recovery.check())
      .to.include({ found: 0, takenBack: 0, running: 0, requeued: 0 })
      .and.deep.include({ differences: [] });
    expect(await recovery.part().check()).to.deep.include({ ok: true });
  });

  it('tells of each attempt that was running: requeued, failed, stopped, still running', async () => {
    const { db } = database;
    const first = await claimed(db);
    const second = await claimed(db);
    const stopped = await claimed(db);
    await claimed(db); // runs on
    await sqlRun(sql.unsafe`update mentor_turn set attempt = 2 where id = ${second.asked.turnId} returning 1`);
    const [row] = await sqlRun(sql.unsafe`select version from mentor_conversation where id = ${stopped.conversationId}`);
    const stop = {
      conversationId: stopped.conversationId,
      turnId: stopped.asked.turnId,
      version: Number(row?.['version']),
      graceMs: 30_000,
    };
    expect(await stopTurn(db, stop)).to.include({ leased: true });
    for (const { sandbox } of [first, second, stopped]) await endSandbox(db, sandbox.id);
    const recovery = await start();
    const report = await recovery.check();
    expect(report).to.deep.equal({
      ...{ found: 4, takenBack: 3, running: 1, requeued: 1, failed: 1, stopped: 1, done: 0, slotsFree: 3, differences: [] },
    });
    const { found, running, requeued, failed, done } = report;
    expect(running + requeued + failed + report.stopped + done, 'the counts add up').to.equal(found);
    expect((await recovery.part().check()).why).to.include('4 attempts were running: 1 requeued, 1 failed, 1 stopped');
  });

  it('is not ready while an attempt is held by a sandbox that has ended, and ready once somebody took it back', async () => {
    const it = await claimed(database.db);
    await endSandbox(database.db, it.sandbox.id);
    const recovery = await start(async () => 0);
    const part = recovery.part();
    expect(part.required).to.equal(true);
    const before = await part.check();
    expect(before.ok).to.equal(false);
    expect(before.why).to.match(/^1 attempts are still held by sandboxes that have ended\./);
    await reap();
    expect(await part.check()).to.deep.include({ ok: true });
  });

  it('is not ready while slots and runs disagree, and says by how much', async () => {
    const it = await claimed(database.db);
    await sqlRun(sql.unsafe`alter table turn_slot disable trigger mentor_turn_run_agrees`);
    try {
      await sqlRun(sql.unsafe`update turn_slot set run_id = null where run_id = ${it.grant.runId} returning 1`);
      const part = (await start()).part();
      const broken = await part.check();
      expect(broken.ok).to.equal(false);
      expect(broken.why).to.include('0 slots are held by 1 leased runs.');
      await sqlRun(sql.unsafe`update turn_slot set run_id = ${it.grant.runId} where slot_no = 1 returning 1`);
      expect(await part.check()).to.deep.include({ ok: true });
      await endDone(it);
      expect(await part.check(), 'what came later is no part of it').to.deep.include({ ok: true });
    } finally {
      await sqlRun(sql.unsafe`alter table turn_slot enable trigger mentor_turn_run_agrees`);
    }
  });

  it('names every book that does not agree', () => {
    const fates = { running: 1, orphans: 0, requeued: 0, failed: 0, stopped: 0, done: 0 };
    const books = { slots: 4, held: 1, free: 3, leased: 1, running: 1, stopping: 0 };
    expect(differencesOf({ found: 1, fates, books })).to.deep.equal([]);
    expect(differencesOf({ found: 2, fates, books })).to.deep.equal(['Of 2 attempts that were running, the rows tell of 1.']);
    expect(differencesOf({ found: 1, fates, books: { ...books, free: 2 } })).to.deep.equal(['4 slots are 1 held and 2 free.']);
    expect(differencesOf({ found: 1, fates, books: { ...books, running: 0 } })).to.deep.equal([
      '1 leased runs are 0 running and 0 stopping turns.',
    ]);
  });
});
