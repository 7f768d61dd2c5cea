/**
 * The session lock of a host while its connection, or the whole PostgreSQL, comes and goes. No attempt is lost to that.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded/index.ts';
import { HostLock } from '../../db/host-lock.ts';
import { endDeadHosts, registerHost } from '../../db/ledger/sandboxes.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { migrate } from '../../db/migrate.ts';
import { sql } from '../../db/pool.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { Gate } from '../support/actor-rig.ts';
import { becomes, startActors, turnOf, until } from '../support/actors.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';
import { bindModel } from '../support/models.ts';
import { answerAtOnce } from '../support/stub-sandboxes.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

describe('the lock of a host', () => {
  const database = useDatabase();
  const locks: HostLock[] = [];
  const wires: TcpProxy[] = [];
  beforeEach(() => emptyLedger(database.db));
  afterEach(async () => {
    await Promise.all(locks.splice(0).map((lock) => lock.close()));
    await Promise.all(wires.splice(0).map((wire) => wire.close()));
  });

  const self = { id: uuidv7<'host'>(), predecessorOf: null };
  const AT_ONCE = { settleMs: 0, suspectMs: 0 };
  let keys = 1_000;

  async function wired() {
    const wire = await TcpProxy.open(database.url);
    wires.push(wire);
    const lockKey = ++keys;
    const take = async () => {
      const lock = await HostLock.take(wire.url(database.url), lockKey, silentLog);
      locks.push(lock);
      return lock;
    };
    const id = uuidv7<'host'>();
    await registerHost(database.db, { id, name: `host-${id}`, lockKey, sandboxesMax: 4 });
    return { wire, lockKey, id, take };
  }

  /** Sessions that hold the lock or wait for it. */
  async function sessions(lockKey: number): Promise<{ held: number; waiting: number }> {
    const [row] = await run(
      database.db,
      sql.unsafe`select count(*) filter (where granted)::int as held, count(*) filter (where not granted)::int as waiting
        from pg_locks where locktype = 'advisory' and objid = ${lockKey} and database = (select oid from pg_database where datname = current_database())`,
    );
    return row as { held: number; waiting: number };
  }

  async function isEnded(id: string): Promise<boolean> {
    const [row] = await run(database.db, sql.unsafe`select ended_at is not null as ended from sandbox_host where id = ${id}`);
    return row?.['ended'] === true;
  }

  it('is taken again when its connection is lost, and the host is not dead', async () => {
    const { lockKey, id, take } = await wired();
    const lock = await take();
    await run(database.db, sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'heph-host-lock'`);
    await until('the loss is noticed', () => !lock.held);
    await endDeadHosts(database.db, self, { settleMs: 0, suspectMs: 60_000 });
    await until('it is taken again', () => lock.held);
    expect(await endDeadHosts(database.db, self, AT_ONCE)).to.equal(0);
    expect(await isEnded(id)).to.equal(false);
    const [row] = await run(database.db, sql.unsafe`select suspected_at from sandbox_host where id = ${id}`);
    expect(row).to.deep.equal({ suspected_at: null });
    expect(await sessions(lockKey)).to.deep.equal({ held: 1, waiting: 0 });
  });

  it('is looked for by one try at a time, however long the database is away', async () => {
    const { wire, lockKey, take } = await wired();
    const lock = await take();
    wire.mode = 'refuse';
    wire.cut();
    await until('it has tried for a while', () => wire.attempts >= 8);
    wire.mode = 'forward';
    await until('it is taken again', () => lock.held);
    const { attempts } = wire;
    await run(database.db, sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'heph-host-lock'`);
    await until('the loss is noticed', () => !lock.held);
    await until('it is taken again', () => lock.held);
    expect(wire.attempts, 'one connection for one loss').to.equal(attempts + 1);
    expect(await sessions(lockKey)).to.deep.equal({ held: 1, waiting: 0 });
  });

  it('is not looked for by one who was told that it cannot be had', async () => {
    const { wire, lockKey, take } = await wired();
    wire.mode = 'refuse';
    const refused = await take().catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Error);
    wire.mode = 'forward';
    await take();
    expect(wire.attempts).to.equal(2);
    expect(await sessions(lockKey)).to.deep.equal({ held: 1, waiting: 0 });
  });

  it('is not looked for any more once it is closed', async () => {
    const { wire, take } = await wired();
    const lock = await take();
    wire.mode = 'refuse';
    wire.cut();
    await until('it tries', () => wire.attempts >= 3);
    await lock.close();
    const { attempts } = wire;
    wire.mode = 'forward';
    const other = await take();
    expect(other.held).to.equal(true);
    expect(wire.attempts).to.equal(attempts + 1);
  });

  it('waits for its holder, and closing ends the wait', async () => {
    const { lockKey, take } = await wired();
    const first = await take();
    const second = take();
    await until('the second waits', async () => (await sessions(lockKey)).waiting === 1);
    await first.close();
    const lock = await second;
    expect(lock.held).to.equal(true);
    expect(await sessions(lockKey)).to.deep.equal({ held: 1, waiting: 0 });
  });

  it('is missed although its connection died without a word', async () => {
    const { wire, take } = await wired();
    const lock = await take();
    wire.mode = 'silent';
    await until('the silence is noticed', () => !lock.held);
    wire.cut();
    wire.mode = 'forward';
    await until('it is taken again', () => lock.held);
  });

  it('brings a host back that was taken for dead while it only had lost its connection', async () => {
    const { wire, id, take } = await wired();
    const lock = await take();
    wire.mode = 'refuse';
    wire.cut();
    await until('the loss is noticed', () => !lock.held);
    await until('it is taken for dead', async () => (await endDeadHosts(database.db, self, AT_ONCE)) > 0);
    expect(await isEnded(id)).to.equal(true);
    wire.mode = 'forward';
    await until('it is taken again', () => lock.held);
    expect(await isEnded(id)).to.equal(false);
  });
});

describe('a restart of PostgreSQL', function () {
  this.timeout(60_000);
  let dataDir: string;
  let postgres: EmbeddedPostgres;
  before(async () => {
    dataDir = mkdtempSync(path.join(tmpdir(), 'heph-restart-'));
    postgres = await startEmbeddedPostgres({ dataDir, log: silentLog, extraSettings: { shared_buffers: '32MB' } });
    await migrate(postgres.url);
  });
  after(async () => {
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('costs no attempt: hosts take their locks again and turns go on', async () => {
    const { url, port } = postgres;
    const pools = [await openTestDatabase(url, 4), await openTestDatabase(url, 4)] as const;
    await reconcileSlots(pools[0], 4);
    await bindModel(pools[0]);
    const servers = [
      await startActors({ pool: pools[0], url }, { clock: systemClock, sweepMs: 200 }),
      await startActors({ pool: pools[1], url }, { clock: systemClock, sweepMs: 200 }),
    ] as const;
    const gate = new Gate();
    for (const { host } of servers) {
      host.script = async (turn) => {
        await gate.wait();
        await answerAtOnce(turn);
      };
    }
    const turns = [];
    for (const server of servers) {
      const person = await makePerson(pools[0]);
      turns.push(await server.ask(person, 'one'), await server.ask(person, 'two'));
    }
    await until('two run', async () => (await run(pools[0], sql.unsafe`select 1 from agent_run where state = 'LEASED'`)).length === 2);
    await postgres.stop();
    await until('the loss is noticed', () => servers.every(({ hostLock }) => !hostLock.held));
    postgres = await startEmbeddedPostgres({ dataDir, port, log: silentLog, extraSettings: { shared_buffers: '32MB' } });
    await until('the locks are held again', () => servers.every(({ hostLock }) => hostLock.held));
    gate.open();
    for (const turnId of turns) {
      await until('the turn is done', () =>
        turnOf(pools[0], turnId).then(
          (turn) => turn.status === 'DONE',
          () => false,
        ),
      );
      expect(await becomes(pools[0], turnId, 'DONE')).to.include({ attempt: 1, epoch: 1 });
    }
    const [dead] = await run(pools[0], sql.unsafe`select count(*)::int as n from sandbox_host where ended_at is not null`);
    expect(dead).to.deep.equal({ n: 0 });
    for (const server of servers) await server.close();
    for (const pool of pools) await pool.close();
  });
});
