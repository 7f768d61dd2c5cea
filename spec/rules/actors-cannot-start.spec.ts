/**
 * A sandbox that cannot be started: the person is told, once no server is left that could still start it. Time stands still unless a test
 * moves it.
 */
import { expect } from 'chai';
import { STARTS_MAX } from '../../db/ledger/give-up.ts';
import { sql } from '../../db/pool.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import type { TurnId } from '../../src/kernel/ids.ts';
import { becomes, openScene, type Server, type ServerOptions, sweepOnce, turnOf, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { answerAtOnce } from '../support/stub-sandboxes.ts';

/** Sweeps after which a server that fails has tried more often than it may: the pauses between its tries are 1, 2, 4, 8, … seconds. */
const SWEEPS = 20;

describe('a sandbox that cannot be started', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));
  const scene = (options: Parameters<typeof openScene>[2] = {}) => openScene(start, database.db, options);

  const broken = (server: Server) => {
    server.host.startFails = () => new RuntimeFault('INTERNAL', 'no', { retry: 'later' });
  };

  async function other(options: Partial<ServerOptions> = {}) {
    const clock = new ManualClock();
    return { clock, server: await start({ clock, ...options }) };
  }

  async function sweeps(server: Server, clock: ManualClock, count = SWEEPS): Promise<void> {
    for (let n = 0; n < count; n++) await sweepOnce(server, clock);
  }

  async function errorOf(turnId: TurnId) {
    const [row] = await run(database.db, sql.unsafe`select error_code, error_text, attempt from mentor_turn where id = ${turnId}`);
    return row;
  }

  const COULD_NOT_START = { error_code: 'NOT_STARTED', error_text: 'Heph could not start. Try again in a moment.', attempt: 0 };

  it('is tried 3 times, and then the person reads that it could not start', async () => {
    const { server, clock, person } = await scene();
    broken(server);
    const turnId = await server.ask(person, 'Why?');
    await until('it was tried', () => server.host.starts.length === 1);
    for (let sweep = 0; server.host.starts.length < STARTS_MAX; sweep++) {
      expect(await turnOf(database.db, turnId)).to.include({ status: 'QUEUED' });
      await sweepOnce(server, clock);
      if (sweep > SWEEPS) throw new Error('it is not tried again');
    }
    await becomes(database.db, turnId, 'FAILED');
    expect(await errorOf(turnId)).to.deep.equal(COULD_NOT_START);
    expect(
      server.changes.filter((change) => change.turnIds.includes(turnId)),
      'asked, and failed',
    ).to.have.length(2);
    const before = server.host.starts.length;
    await sweeps(server, clock);
    expect(server.host.starts, 'nothing is tried for nobody').to.have.length(before);
  });

  it('fails the questions that waited behind it too, and answers the next one when it can be started again', async () => {
    const { server, clock, person } = await scene();
    broken(server);
    const waiting = [await server.ask(person, 'one'), await server.ask(person, 'two')];
    await sweeps(server, clock);
    for (const turnId of waiting) expect(await errorOf(turnId)).to.deep.equal(COULD_NOT_START);
    server.host.startFails = () => null;
    const next = await server.ask(person, 'three');
    await sweeps(server, clock, 40);
    await becomes(database.db, next, 'DONE');
  });

  it('is not given up while another server could still start it', async () => {
    const { server, clock, person } = await scene();
    const b = await other();
    broken(server);
    const turnId = await server.ask(person, 'Why?');
    await sweeps(server, clock);
    expect(server.host.starts.length).to.be.above(STARTS_MAX);
    expect(await turnOf(database.db, turnId)).to.include({ status: 'QUEUED' });
    await sweepOnce(b.server, b.clock);
    await becomes(database.db, turnId, 'DONE');
  });

  it('is given up when each server has failed, and when the others are gone or start none', async () => {
    const cases: ((b: Awaited<ReturnType<typeof other>>) => Promise<void>)[] = [
      async ({ server, clock }) => {
        broken(server);
        await sweeps(server, clock);
      },
      async ({ server }) => {
        await run(database.db, sql.unsafe`update sandbox_host set ended_at = clock_timestamp() where id = ${server.hostId} returning id`);
      },
    ];
    for (const lastHope of cases) {
      await emptyLedger(database.db);
      const { server, clock, person } = await scene();
      const b = await other();
      await other({ sandboxesMax: 0 });
      broken(server);
      const turnId = await server.ask(person, 'Why?');
      await sweeps(server, clock);
      expect(await turnOf(database.db, turnId)).to.include({ status: 'QUEUED' });
      await lastHope(b);
      await sweeps(server, clock, 31);
      expect(await errorOf(turnId)).to.deep.equal(COULD_NOT_START);
    }
  });

  it('is one that dies before it was given a run: it is not tried again without a pause, and given up in the end', async () => {
    const { server, clock, person } = await scene();
    server.host.beforePull = async () => {
      await new Promise<void>((resolve) => setImmediate(resolve)); // it has just been started
      for (const sandbox of server.host.sandboxes) sandbox.kill();
    };
    const turnId = await server.ask(person, 'Why?');
    await until('it was tried', () => server.host.starts.length === 1);
    await until('its death was noted', async () => {
      const rows = await run(database.db, sql.unsafe`select id from sandbox where start_failed`);
      return rows.length === 1;
    });
    await sweeps(server, clock);
    await becomes(database.db, turnId, 'FAILED');
    expect(await errorOf(turnId)).to.deep.equal(COULD_NOT_START);
    expect(server.host.starts).to.have.length(STARTS_MAX);
  });

  it('is not one that dies later, and does not count against a question that was asked after it', async () => {
    const { server, clock } = await scene();
    const person = await makePerson(database.db);
    await becomes(database.db, await server.ask(person, 'one'), 'DONE');
    for (const sandbox of server.host.sandboxes) sandbox.kill();
    await until('it is gone', () => server.host.sandboxes.length === 0);
    expect(await run(database.db, sql.unsafe`select id from sandbox where start_failed`)).to.deep.equal([]);
    broken(server);
    const failed = await server.ask(person, 'two');
    await sweeps(server, clock);
    await becomes(database.db, failed, 'FAILED');
    let tries = 0;
    server.host.startFails = () => (++tries < STARTS_MAX ? new RuntimeFault('INTERNAL', 'no', { retry: 'later' }) : null);
    server.host.script = answerAtOnce;
    const next = await server.ask(person, 'three');
    await sweeps(server, clock, 60);
    await becomes(database.db, next, 'DONE');
  });
});
